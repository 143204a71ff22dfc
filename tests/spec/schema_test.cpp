// The JSON Schema, the reference and the reader follow from one table: they must agree.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "compiler/spec/spec.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/fields.hpp"
#include "tests/spec/golden_file.hpp"

namespace lacuna {
namespace {

using Json = nlohmann::json;

class SchemaCheck {
 public:
  SchemaCheck() {
    const Json text = Json::parse(spec_json_schema());
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema_);
  }
  bool accepts(const Json& spec) const {
    valijson::Validator validator;
    return validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(spec), nullptr);
  }

 private:
  valijson::Schema schema_;
};

/// Does the reader find fault with a single field? Rules between fields are not the schema's.
bool reader_accepts(const Json& spec) {
  static const std::set<Code> kOfFields = {Code::kUnknownKey, Code::kWrongType, Code::kOutOfRange,
                                           Code::kMissingField};
  Diagnostics diagnostics;
  read_spec({"x.json", spec.dump()}, diagnostics);
  for (const Diagnostic& d : diagnostics.items)
    if (kOfFields.count(d.code) != 0) return false;
  return true;
}

/// A legal spec with `value` at the path of a field.
Json spec_with(const SpecField& field, const Json& value) {
  Json spec = {{"version", 1}, {"name", "x"}};
  std::string pointer = "/" + std::string(field.path);
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  if (pointer.rfind("/gate/", 0) == 0) spec["gate"] = {{"skip", "gap < -9"}, {"skips", {"pv"}}};
  if (pointer.rfind("/predictor/", 0) == 0) spec["predictor"] = {{"keep", "true"}};
  if (pointer.rfind("/predictor/estimate/index/", 0) == 0)
    spec["predictor"]["estimate"]["index"] = {{"q", "0.5"}, {"k", "0.5"}};
  const bool in_branch = pointer.rfind("/branches/", 0) == 0;
  if (in_branch) spec["branches"] = {{{"name", "a"}}, {{"name", "b"}}};
  const std::size_t star = pointer.find('*');
  if (star != std::string::npos) pointer.replace(star, 1, in_branch ? "0" : "tau");
  spec[Json::json_pointer(pointer)] = value;
  return spec;
}

/// Values of every type, and those at the edges of the field's range.
std::vector<Json> values_for(const SpecField& field) {
  std::vector<Json> values = {nullptr, true,  0,    1,      -1,    0.5,    16,
                              64,      "x",   "",   "auto", "inf", "-inf", "scalar",
                              1e38,    -1e38, 1e39, -1e39,  1e-45, 1 << 20};
  for (const double edge : {field.minimum, field.maximum})
    for (const double step : {-1.0, 0.0, 1.0, 16.0, -16.0}) {
      const double value = edge + step;
      values.emplace_back(value);
      if (std::abs(value) < 1e6) values.emplace_back(static_cast<int>(value));
    }
  for (const int value : field.values)
    for (const int step : {-1, 0, 1}) values.emplace_back(value + step);
  for (const std::string_view name : field.names) values.emplace_back(name);
  for (const char* summary : {"mean", "tokens", "antidiagonal(8)", "antidiagonal(3)", "last(64)",
                              "last(0)", "last(257)", "last", "mean()", "mean(1)"})
    values.emplace_back(summary);
  for (const char* shape :
       {"[heads]", "[heads, q_tiles]", "[batch,heads , k_tiles]", "[ n_q ]", "[heads, heads]",
        "[n_q, heads, n_q]", "[]", "[head]", "[batch, heads, q_tiles, k_tiles]", "heads", "[heads",
        "[heads,]", "[heads q_tiles]", "scalar ", "[n_q, n_k]"})
    values.emplace_back(shape);
  for (const char* bands : {"0:32", "0:32,64:96", "0:8", "0:32,", "0-32", "0:272"})
    values.emplace_back(bands);
  for (const char* name : {"a", "A-1_b", "1a", "a b", "-a", "\xC3\xA9"}) values.emplace_back(name);
  values.emplace_back(std::string(64, 'a'));
  values.emplace_back(std::string(65, 'a'));
  return values;
}

/// The values themselves, and lists and objects of them.
std::vector<Json> candidates_for(const SpecField& field) {
  const Json gate = {{"skip", "gap < -9"}, {"skips", {"pv"}}};
  std::vector<Json> candidates = {gate,
                                  Json::array(),
                                  Json::object(),
                                  {{"$comment", "x"}},
                                  {{"$comment", 1}},
                                  {{"unheard_of", 1}}};
  candidates.push_back({{"keep", "true"}});
  for (const std::size_t count : {1, 2, 4, 5})
    candidates.push_back(Json::array_t(count, Json{{"name", "a"}}));
  candidates.push_back({{"name", "a"}});
  candidates.push_back(Json::array({{{"name", "a"}}, {{"name", 1}}}));
  candidates.push_back({{"keep", "true"}, {"estimate", Json::object()}});
  candidates.push_back({{"q", "0.5"}, {"k", "0.5"}});
  for (const std::string_view grid : field.grids) {
    const std::string name(grid);
    for (const int side : {-1, 0, 1, 64, 65536, 65537}) {
      candidates.push_back({{name, {1, side, 2}}});
      candidates.push_back({{name, {1, 2, 3}}, {"$comment", side}});
    }
    for (const Json& sides : {Json{1, 2}, Json{1, 2, 3, 4}, Json("1"), Json{1, "2", 3}, Json(7)})
      candidates.push_back({{name, sides}});
    candidates.push_back({{name, {1, 2, 3}}, {"$comment", "x"}});
    candidates.push_back({{name, {1, 2, 3}}, {"external", {1, 2, 3}}});
    candidates.push_back({{"hilbert", {1, 2, 3}}, {name, {1, 2, 3}}});
  }
  const std::vector<Json> values = values_for(field);
  for (const Json& value : values) {
    candidates.push_back(value);
    candidates.push_back(Json::array({value}));
    candidates.push_back(Json::array({value, value}));
    candidates.push_back(Json::array({value, "inf"}));
    candidates.push_back(Json::array({0, value}));
    candidates.push_back(Json::array({value, "pv", "bf16", 64}));
    candidates.push_back(Json::array({0, 1, value}));
    candidates.push_back({{"p", value}});
    candidates.push_back({{"q", value}});
  }
  return candidates;
}

/// JSON Schema counts 16.0 as an integer; the validator of this test does not.
bool is_whole_float(const Json& value) {
  if (value.is_number_float()) return std::nearbyint(value.get<double>()) == value.get<double>();
  return value.is_structured() && std::any_of(value.begin(), value.end(), is_whole_float);
}

bool takes_fractions(const SpecField& field) {
  return field.kind == SpecFieldKind::kNumber || field.kind == SpecFieldKind::kBound ||
         field.kind == SpecFieldKind::kRange;
}

TEST(Schema, AgreesWithTheReaderOnEveryField) {
  const SchemaCheck schema;
  for (const SpecField& field : spec_fields()) {
    int legal = 0, illegal = 0;
    for (const Json& value : candidates_for(field)) {
      if (is_whole_float(value) && !takes_fractions(field)) continue;
      const Json spec = spec_with(field, value);
      const bool accepted = reader_accepts(spec);
      EXPECT_EQ(schema.accepts(spec), accepted) << spec.dump();
      ++(accepted ? legal : illegal);
    }
    EXPECT_GT(legal, 0) << field.path;
    EXPECT_GT(illegal, 0) << field.path;
  }
}

TEST(Schema, AgreesWithTheReaderOnMissingFields) {
  const SchemaCheck schema;
  const Json specs[] = {Json::object(),
                        {{"version", 1}},
                        {{"name", "x"}},
                        {{"version", 1}, {"name", "x"}, {"gate", Json::object()}},
                        {{"version", 1}, {"name", "x"}, {"gate", {{"skip", "gap < -9"}}}},
                        {{"version", 1}, {"name", "x"}, {"predictor", {{"reuse", 2}}}}};
  for (const Json& spec : specs) {
    EXPECT_FALSE(schema.accepts(spec)) << spec.dump();
    EXPECT_FALSE(reader_accepts(spec)) << spec.dump();
  }
}

TEST(Schema, AgreesWithTheReaderOnNamesOfParamsAndLet) {
  const SchemaCheck schema;
  for (const std::string& name :
       std::vector<std::string>{"a", "_a", "A1", "1a", "a-b", "a b", "", "$comment", "$a",
                                std::string(64, 'a'), std::string(65, 'a')}) {
    Json spec = {{"version", 1}, {"name", "x"}, {"params", {{name, {{"default", 1}}}}}};
    EXPECT_EQ(schema.accepts(spec), reader_accepts(spec)) << spec.dump();
    spec = {{"version", 1}, {"name", "x"}, {"let", {{name, "q - k"}}}};
    EXPECT_EQ(schema.accepts(spec), reader_accepts(spec)) << spec.dump();
  }
}

TEST(Schema, AcceptsEveryShippedSpec) {
  const SchemaCheck schema;
  int specs = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_dir() / "specs")) {
    if (entry.path().extension() != ".json" || entry.path().filename() == "schema.json") continue;
    EXPECT_TRUE(schema.accepts(Json::parse(test::read_file(entry.path())))) << entry.path();
    ++specs;
  }
  EXPECT_GE(specs, 7);
}

TEST(Schema, FileIsUpToDate) {
  test::expect_golden(test::source_dir() / "specs/schema.json", spec_json_schema());
}

TEST(Reference, OfTheGalleryIsUpToDate) {
  const std::filesystem::path path = test::source_dir() / "specs/README.md";
  const std::string begin = "<!-- reference: generated -->\n";
  const std::string end = "<!-- end of reference -->\n";
  const std::string text = test::read_file(path);
  const std::size_t first = text.find(begin);
  const std::size_t last = text.find(end);
  ASSERT_TRUE(first != std::string::npos && last != std::string::npos);
  test::expect_golden(path,
                      text.substr(0, first + begin.size()) + spec_reference() + text.substr(last));
}

TEST(FieldTable, IsWellFormed) {
  std::set<std::string_view> seen = {""};
  for (const SpecField& field : spec_fields()) {
    const std::size_t dot = field.path.rfind('.');
    const auto parent = dot == std::string_view::npos ? "" : field.path.substr(0, dot);
    EXPECT_EQ(seen.count(parent), 1U) << field.path << " stands before its parent";
    EXPECT_TRUE(seen.insert(field.path).second) << field.path << " occurs twice";
    EXPECT_FALSE(field.doc.empty()) << field.path;
    const bool ranged = field.kind == SpecFieldKind::kInteger || field.maximum != 0;
    EXPECT_TRUE(!ranged || !field.why.empty()) << field.path << " does not say why its range is";
  }
}

TEST(FieldTable, NearestLegalValuesLieOnBothSides) {
  const SpecField& q = *find_field("tile", "q");
  EXPECT_EQ(nearest_legal(q, 100), (std::vector{96, 112}));
  EXPECT_EQ(nearest_legal(q, 0), std::vector{16});
  EXPECT_EQ(nearest_legal(q, 1e9), std::vector{256});
  EXPECT_EQ(nearest_legal(*find_field("attention", "head_dim"), 100), (std::vector{96, 112}));
  const SpecField& columns = *find_field("predictor.tile", "k");
  EXPECT_EQ(nearest_legal(columns, 3), (std::vector{1, 8}));
  EXPECT_EQ(nearest_legal(columns, 12), (std::vector{8, 16}));
  EXPECT_EQ(nearest_legal(columns, 24), (std::vector{16, 32}));
}

TEST(Summaries, TextSurvivesARoundTrip) {
  for (const SummaryInfo& row : all_summaries()) {
    std::vector<int> counts = legal_counts(row.kind);
    if (counts.empty()) counts.push_back(1);
    for (const int count : counts) {
      const Summary summary{row.kind, count};
      EXPECT_EQ(parse_summary(name_of(summary)), summary) << name_of(summary);
    }
  }
  for (const char* text : {"", "means", "mean(1)", "last", "last()", "last(0)", "last(257)",
                           "last(01)", "antidiagonal(3)", "antidiagonal(64)", "tokens "})
    EXPECT_FALSE(parse_summary(text)) << text;
}

}  // namespace
}  // namespace lacuna
