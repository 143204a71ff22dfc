// Stand-in for templates/arch/read_or.cuh.
#pragma once

namespace lacuna {

template <class T>
T read_or(const T* data, long long offset, T otherwise) {
  return data == nullptr ? otherwise : data[offset];
}

}  // namespace lacuna
