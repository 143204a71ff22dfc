#include "tools/common/shape_option.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace lacuna::tools {
namespace {

struct ShapeField {
  const char* name;
  std::int32_t LaunchShape::*member;
};
constexpr ShapeField kFields[] = {{"b", &LaunchShape::n_b},
                                  {"h", &LaunchShape::n_h},
                                  {"h_kv", &LaunchShape::n_h_kv},
                                  {"n_q", &LaunchShape::n_q},
                                  {"n_k", &LaunchShape::n_k}};

/// The members that a name sets.
std::vector<std::int32_t LaunchShape::*> members_of(const std::string& name) {
  if (name == "n") return {&LaunchShape::n_q, &LaunchShape::n_k};
  for (const ShapeField& field : kFields)
    if (name == field.name) return {field.member};
  return {};
}

}  // namespace

std::string parse_shape(const std::string& text, LaunchShape& shape) {
  std::vector<std::string> names;
  bool has_heads_kv = false, has_heads = false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string name = item.substr(0, equals);
    const auto members = members_of(name);
    if (members.empty()) return "\"" + item + "\": expected one of b, h, h_kv, n, n_q, n_k";
    std::int32_t value = 0;
    const char* last = item.data() + item.size();
    const char* first = item.data() + std::min(equals + 1, item.size());
    const auto parsed = std::from_chars(first, last, value);
    if (parsed.ec != std::errc() || parsed.ptr != last || value < 1)
      return name + ": expected a whole number from 1 to 2147483647, got \"" +
             std::string(first, last) + "\"";
    if (std::ranges::find(names, name) != names.end()) return name + ": is said twice";
    names.push_back(name);
    for (const auto member : members) shape.*member = value;
    has_heads |= name == "h";
    has_heads_kv |= name == "h_kv";
    begin = end + 1;
  }
  if (has_heads && !has_heads_kv) shape.n_h_kv = shape.n_h;
  if (shape.n_h % shape.n_h_kv != 0)
    return "h: expected a multiple of h_kv = " + std::to_string(shape.n_h_kv) + ", got " +
           std::to_string(shape.n_h);
  return "";
}

void add_shape_option(CLI::App& verb, LaunchShape& shape) {
  verb.add_option_function<std::string>(
          "--shape",
          [&shape](const std::string& text) {
            const std::string error = parse_shape(text, shape);
            if (!error.empty()) throw CLI::ValidationError("--shape", error);
          },
          "Sizes of the problem (" + print_shape(shape) + ")")
      ->type_name("b=..,h=..,n=..");
}

std::string print_shape(const LaunchShape& shape) {
  std::string text;
  for (const ShapeField& field : kFields)
    text += (text.empty() ? "" : ", ") + std::string(field.name) + "=" +
            std::to_string(shape.*field.member);
  return text;
}

}  // namespace lacuna::tools
