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
template <class T>
struct Operand {
  std::string_view name;
  int T::*member;
  bool required = true;
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
  static constexpr auto table = std::tuple{Attribute{"name", &Input::name}};
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
                 Formula{"mask", &Attend::mask, Site::kMask},
                 Formula{"score", &Attend::score, Site::kScore},
                 Attribute{"gate", &Attend::gate},
                 Attribute{"scale", &Attend::scale},
                 Attribute{"tile_q", &Attend::tile_q},
                 Attribute{"tile_k", &Attend::tile_k},
                 Attribute{"order", &Attend::order},
                 Attribute{"lse", &Attend::lse}};
};

/// visit(field) for each field of T, in table order.
template <class T, class Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, Fields<T>::table);
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
