// Text from elsewhere (names of files, strings of a JSON) on its way to people: nothing in it may
// drive their terminal.
#pragma once

#include <string>
#include <string_view>

namespace lacuna {

/// A question mark, as `ls` shows it, for each byte of a control character (of ASCII and of
/// Latin-1, and those that turn the direction of text) and for each byte that is no UTF-8. Those of
/// ASCII that are in `kept` stay. The length is that of `text`.
std::string printable(std::string text, std::string_view kept = "\t");

/// The same for a text of several lines.
inline std::string printable_lines(std::string text) { return printable(std::move(text), "\t\n"); }

}  // namespace lacuna
