// Lays out JSON for people: a value stands on one line where it fits, else one line per member.
#pragma once

#include <string>

namespace lacuna {

/// `text` must be valid JSON; scalars are kept as written. Ends with a line feed.
std::string layout_json(const std::string& text);

}  // namespace lacuna
