// The fields of every op, declared once. Printer, parser and equality walk these tables, so a new
// field is one line here and a new op one table.
//
// A field that equals its default is not printed and may be left out of the text.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "compiler/ir/program.hpp"

namespace lacuna {

/// A value another node defines, written %name. Positional if required, else `name=%value`.
/// Positional operands that are not required are all given or none.
template <class T>
struct Operand {
  std::string_view name;
  int T::*member;
  bool required = true;
  bool positional = required;
};

/// A number, word, string or nested group: `name=value`.
template <class T, class V>
struct Attribute {
  std::string_view name;
  V T::*member;
};
template <class T, class V>
Attribute(std::string_view, V T::*) -> Attribute<T, V>;

/// An expression, parsed and typed for its site: `name="formula"`.
template <class T>
struct Formula {
  std::string_view name;
  Expr T::*member;
  Site site;
};
template <class T>
Formula(std::string_view, Expr T::*, Site) -> Formula<T>;

/// Some of several booleans: `name=[a, c]`.
template <class T, std::size_t N>
struct Flags {
  struct Flag {
    std::string_view name;
    bool T::*member;
  };
  std::string_view name;
  std::array<Flag, N> flags;
};

/// Fields<T>::table is the tuple of T's fields; Fields<T>::name is the op's word in the text.
template <class T>
struct Fields;

template <>
struct Fields<Input> {
  static constexpr std::string_view name = "input";
  static constexpr auto table =
      std::tuple{Attribute{"name", &Input::name}, Attribute{"dims", &Input::dims}};
};

template <>
struct Fields<Permute> {
  static constexpr std::string_view name = "permute";
  static constexpr auto table =
      std::tuple{Operand<Permute>{"x", &Permute::x}, Operand<Permute>{"order", &Permute::order}};
};

template <>
struct Fields<Unpermute> {
  static constexpr std::string_view name = "unpermute";
  static constexpr auto table = std::tuple{Operand<Unpermute>{"x", &Unpermute::x},
                                           Operand<Unpermute>{"order", &Unpermute::order}};
};

template <>
struct Fields<Means> {
  static constexpr std::string_view name = "means";
  static constexpr auto table =
      std::tuple{Operand<Means>{"x", &Means::x}, Attribute{"tokens", &Means::tokens}};
};

template <>
struct Fields<MergeBranch> {
  static constexpr std::string_view name = "merge_branch";
  static constexpr auto table =
      std::tuple{Operand<MergeBranch>{"o", &MergeBranch::o},
                 Operand<MergeBranch>{"lse", &MergeBranch::lse, false},
                 Operand<MergeBranch>{"order", &MergeBranch::order, false},
                 Attribute{"index", &MergeBranch::index},
                 Attribute{"count", &MergeBranch::count},
                 Attribute{"queries", &MergeBranch::queries},
                 Formula{"weight", &MergeBranch::weight, Site::kWeight},
                 Attribute{"lse_base", &MergeBranch::lse_base}};
};

template <>
struct Fields<Smooth> {
  static constexpr std::string_view name = "smooth";
  static constexpr auto table = std::tuple{Operand<Smooth>{"x", &Smooth::x}};
};

template <>
struct Fields<Summarise> {
  static constexpr std::string_view name = "summarise";
  static constexpr auto table = std::tuple{
      Operand<Summarise>{"x", &Summarise::x}, Operand<Summarise>{"mean", &Summarise::mean, false},
      Attribute{"tile", &Summarise::tile}, Attribute{"rounded", &Summarise::rounded},
      Attribute{"bounds", &Summarise::bounds}};
};

template <>
struct Fields<Similarity> {
  static constexpr std::string_view name = "similarity";
  static constexpr auto table =
      std::tuple{Operand<Similarity>{"x", &Similarity::x},
                 Operand<Similarity>{"mean", &Similarity::mean, false},
                 Attribute{"tile", &Similarity::tile}, Attribute{"form", &Similarity::form}};
};

template <>
struct Fields<Quantise> {
  static constexpr std::string_view name = "quantise";
  static constexpr auto table = std::tuple{
      Operand<Quantise>{"x", &Quantise::x}, Operand<Quantise>{"mean", &Quantise::mean, false},
      Attribute{"bits", &Quantise::bits}, Attribute{"group", &Quantise::group},
      Attribute{"tile", &Quantise::tile}};
};

template <>
struct Fields<QuantiseValues> {
  static constexpr std::string_view name = "quantise_values";
  static constexpr auto table = std::tuple{Operand<QuantiseValues>{"x", &QuantiseValues::x},
                                           Attribute{"range", &QuantiseValues::range}};
};

template <>
struct Fields<Project> {
  static constexpr std::string_view name = "project";
  static constexpr auto table = std::tuple{Operand<Project>{"x", &Project::x},
                                           Operand<Project>{"mean", &Project::mean, false},
                                           Operand<Project>{"onto", &Project::onto, false}};
};

template <>
struct Fields<Estimate> {
  static constexpr std::string_view name = "estimate";
  static constexpr auto table =
      std::tuple{Operand<Estimate>{"q", &Estimate::q, false, true},
                 Operand<Estimate>{"k", &Estimate::k, false, true},
                 Operand<Estimate>{"q_scale", &Estimate::q_scale, false},
                 Operand<Estimate>{"k_scale", &Estimate::k_scale, false},
                 Operand<Estimate>{"row_bias", &Estimate::row_bias, false},
                 Operand<Estimate>{"column_bias", &Estimate::column_bias, false},
                 Operand<Estimate>{"exact_q", &Estimate::exact_q, false},
                 Operand<Estimate>{"exact_k", &Estimate::exact_k, false},
                 Operand<Estimate>{"previous_lse", &Estimate::previous_lse, false},
                 Operand<Estimate>{"similar_q", &Estimate::similar_q, false},
                 Operand<Estimate>{"similar_k", &Estimate::similar_k, false},
                 Operand<Estimate>{"within", &Estimate::within, false},
                 Attribute{"rows", &Estimate::rows},
                 Attribute{"columns", &Estimate::columns},
                 Attribute{"bits", &Estimate::bits},
                 Attribute{"group", &Estimate::group},
                 Attribute{"reduce", &Estimate::reduce},
                 Attribute{"normalise", &Estimate::normalise},
                 Formula{"mask", &Estimate::mask, Site::kMask},
                 Formula{"reference", &Estimate::reference, Site::kReference},
                 Formula{"exclude", &Estimate::exclude, Site::kExclude},
                 Formula{"from", &Estimate::from, Site::kFrom},
                 Attribute{"index_heads", &Estimate::index_heads},
                 Attribute{"index_dim", &Estimate::index_dim},
                 Formula{"index_q", &Estimate::index_q, Site::kIndexQ},
                 Formula{"index_k", &Estimate::index_k, Site::kIndexK},
                 Formula{"index_weight", &Estimate::index_weight, Site::kIndexWeight},
                 Attribute{"scale", &Estimate::scale},
                 Attribute{"temperature", &Estimate::temperature},
                 Attribute{"dims", &Estimate::dims},
                 Attribute{"tile_q", &Estimate::tile_q},
                 Attribute{"tile_k", &Estimate::tile_k},
                 Attribute{"pairs", &Estimate::pairs}};
};

template <>
struct Fields<Select> {
  static constexpr std::string_view name = "select";
  static constexpr auto table = std::tuple{Operand<Select>{"p", &Select::p, false},
                                           Operand<Select>{"score", &Select::score, false},
                                           Operand<Select>{"similar_q", &Select::similar_q, false},
                                           Operand<Select>{"similar_k", &Select::similar_k, false},
                                           Operand<Select>{"within", &Select::within, false},
                                           Operand<Select>{"joins", &Select::joins, false},
                                           Formula{"keep", &Select::keep, Site::kKeep},
                                           Formula{"mask", &Select::mask, Site::kMask},
                                           Attribute{"tile_q", &Select::tile_q},
                                           Attribute{"tile_k", &Select::tile_k},
                                           Attribute{"shared_heads", &Select::shared_heads},
                                           Attribute{"pairs", &Select::pairs}};
};

template <>
struct Fields<Compact> {
  static constexpr std::string_view name = "compact";
  static constexpr auto table = std::tuple{
      Operand<Compact>{"bits", &Compact::bits}, Formula{"mask", &Compact::mask, Site::kMask},
      Attribute{"keep_q", &Compact::keep_q},    Attribute{"keep_k", &Compact::keep_k},
      Attribute{"tile_q", &Compact::tile_q},    Attribute{"tile_k", &Compact::tile_k}};
};

template <>
struct Fields<Gate> {
  static constexpr auto table = std::tuple{
      Attribute{"scope", &Gate::scope}, Formula{"skip", &Gate::skip, Site::kGate},
      Formula{"exempt", &Gate::exempt, Site::kGate},
      Flags<Gate, 3>{
          "skips",
          {{{"v_load", &Gate::skips_v_load}, {"exp", &Gate::skips_exp}, {"pv", &Gate::skips_pv}}}}};
};

template <>
struct Fields<Attend> {
  static constexpr std::string_view name = "attend";
  static constexpr auto table =
      std::tuple{Operand<Attend>{"q", &Attend::q},
                 Operand<Attend>{"k", &Attend::k},
                 Operand<Attend>{"v", &Attend::v},
                 Operand<Attend>{"list_indices", &Attend::list_indices, false},
                 Operand<Attend>{"list_counts", &Attend::list_counts, false},
                 Operand<Attend>{"columns", &Attend::columns, false},
                 Operand<Attend>{"q_scale", &Attend::q_scale, false},
                 Operand<Attend>{"k_scale", &Attend::k_scale, false},
                 Operand<Attend>{"v_scale", &Attend::v_scale, false},
                 Operand<Attend>{"row_bias", &Attend::row_bias, false},
                 Operand<Attend>{"column_bias", &Attend::column_bias, false},
                 Attribute{"qk_tile_q", &Attend::qk_tile_q},
                 Attribute{"qk_tile_k", &Attend::qk_tile_k},
                 Attribute{"qk_group", &Attend::qk_group},
                 Attribute{"keep_k", &Attend::keep_k},
                 Formula{"mask", &Attend::mask, Site::kMask},
                 Formula{"score", &Attend::score, Site::kScore},
                 Attribute{"gate", &Attend::gate},
                 Attribute{"scale", &Attend::scale},
                 Attribute{"tile_q", &Attend::tile_q},
                 Attribute{"tile_k", &Attend::tile_k},
                 Attribute{"order", &Attend::order},
                 Formula{"sink", &Attend::sink, Site::kSink},
                 Attribute{"normalise", &Attend::normalise},
                 Attribute{"lse", &Attend::lse},
                 Attribute{"lse_base", &Attend::lse_base},
                 Attribute{"v_of_k", &Attend::v_of_k},
                 Attribute{"pairs", &Attend::pairs}};
};

/// visit(field) for each field of T, in table order.
template <class T, class Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, Fields<T>::table);
}

/// visit(id, required) for each operand of an op; the id is writable if the op is, -1: not given.
template <class AnyOp, class Visit>
void for_each_operand(AnyOp& op, Visit&& visit) {
  std::visit(
      [&](auto& fields) {
        using T = std::remove_cvref_t<decltype(fields)>;
        for_each_field<T>([&](const auto& field) {
          if constexpr (std::is_same_v<decltype(field), const Operand<T>&>)
            visit(fields.*field.member, field.required);
        });
      },
      op);
}

/// visit(expr) for each formula of T's fields that is given, those of a gate included.
template <class Fielded, class Visit>
void for_each_formula_of(Fielded& fields, Visit&& visit) {
  using T = std::remove_const_t<Fielded>;
  for_each_field<T>([&](const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, Formula<T>>) {
      if (!(fields.*field.member).empty()) visit(fields.*field.member);
    } else if constexpr (std::is_same_v<Field, Attribute<T, std::optional<Gate>>>) {
      if (fields.*field.member) for_each_formula_of(*(fields.*field.member), visit);
    }
  });
}

/// visit(expr) for each given formula of an op.
template <class AnyOp, class Visit>
void for_each_formula(AnyOp& op, Visit&& visit) {
  std::visit([&](auto& fields) { for_each_formula_of(fields, visit); }, op);
}

template <class T, class V>
bool same_field(const Attribute<T, V>& field, const T& a, const T& b) {
  return a.*field.member == b.*field.member;
}
template <class T>
bool same_field(const Operand<T>& field, const T& a, const T& b) {
  return a.*field.member == b.*field.member;
}
template <class T>
bool same_field(const Formula<T>& field, const T& a, const T& b) {
  return a.*field.member == b.*field.member;
}
template <class T, std::size_t N>
bool same_field(const Flags<T, N>& field, const T& a, const T& b) {
  for (const auto& flag : field.flags) {
    if (a.*flag.member != b.*flag.member) return false;
  }
  return true;
}

/// Equality from the table: every field, and nothing else, counts.
template <class T>
bool equal_fields(const T& a, const T& b) {
  return std::apply([&](const auto&... field) { return (same_field(field, a, b) && ...); },
                    Fields<T>::table);
}

}  // namespace lacuna
