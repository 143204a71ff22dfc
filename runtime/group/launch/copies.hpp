// Copies of rows within a launch: on a stream of the GPU, or at once on the CPU.
#pragma once

#include <vector>

#include "runtime/group/launch/piece_arguments.hpp"

namespace lacuna::group {

/// Rows, or whole heads of rows, that lie a pitch of bytes apart.
struct Lines {
  unsigned char* to;
  const unsigned char* from;
  std::size_t to_pitch, from_pitch, width, count;
};

/// `device` null: of the host's memory. False with diagnostics.
bool copy_lines(const Device* device, const Lines& lines, CUstream stream,
                Diagnostics& diagnostics);

bool copy_all(const LaunchPlaces& places, const std::vector<Copy>& copies, CUstream stream,
              Diagnostics& diagnostics);

}  // namespace lacuna::group
