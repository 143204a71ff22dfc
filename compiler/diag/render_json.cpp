// The machine-readable form of diagnostics.
#include <nlohmann/json.hpp>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna {

std::string render_json(const Diagnostics& diagnostics, const SourceText& source) {
  nlohmann::ordered_json items = nlohmann::ordered_json::array();
  for (const Diagnostic& d : diagnostics.items) {
    items.push_back({{"severity", name_of(d.severity)},
                     {"code", code_name(d.code)},
                     {"message", d.message},
                     {"path", source.path},
                     {"pointer", d.pointer},
                     {"line", d.span.line},
                     {"column", d.span.column},
                     {"length", d.span.length},
                     {"notes", d.notes},
                     {"helps", d.helps}});
  }
  // Names and quoted input may hold bytes that are no UTF-8, and controls of terminals: of those
  // all but ASCII stands as \u.
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  return nlohmann::ordered_json{{"diagnostics", items}}.dump(2, ' ', true, kReplace) + "\n";
}

}  // namespace lacuna
