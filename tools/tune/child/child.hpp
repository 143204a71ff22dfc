// The child's side of `lacuna tune`: requests from standard input, replies to standard output.
#pragma once

namespace lacuna::tools {

/// Serves until the input ends; the exit status.
int serve_tuning();

}  // namespace lacuna::tools
