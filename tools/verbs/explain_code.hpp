// What an error code means: its summary, and the fields or rules that raise it.
#pragma once

#include <optional>
#include <string>

#include "tools/common/session.hpp"

namespace lacuna::tools {

/// "E0203" or "e203" -> 203.
std::optional<int> code_number(const std::string& subject);

/// Fails with kInput if there is no such code.
void explain_code(int number, Session& session);

}  // namespace lacuna::tools
