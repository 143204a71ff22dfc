// The shortest decimal text that reads back as the same f32, always with a point or an exponent.
#pragma once

#include <charconv>
#include <string>

namespace lacuna {

inline std::string f32_text(float value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace lacuna
