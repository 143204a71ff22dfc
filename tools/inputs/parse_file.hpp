// A file as one value: read, parsed, and its errors reported with its name.
#pragma once

#include <string>

#include "compiler/diag/diagnostic.hpp"
#include "tools/common/session.hpp"
#include "tools/io/file_io.hpp"

namespace lacuna::tools {

/// `parse(bytes, diagnostics)` returns an optional; nothing if the file cannot be read.
template <class Parse>
auto parse_file(const std::string& path, const Parse& parse, Session& session) {
  Diagnostics diagnostics;
  const auto bytes = read_file(path, diagnostics);
  decltype(parse(*bytes, diagnostics)) value;
  if (bytes) value = parse(*bytes, diagnostics);
  session.report(diagnostics, {path, ""});
  return value;
}

}  // namespace lacuna::tools
