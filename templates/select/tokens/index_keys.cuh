// The keys of an index, four elements at a time: by one load where the formula is an element of a
// parameter whose vectors allow it, else by the formula of each.
#pragma once

#include "base/optional_field.cuh"

namespace lacuna {

/// Hooks: are keys the vectors of a parameter (index_k_has_quads, index_k_at)?
LACUNA_OPTIONAL_FIELD(bool, index_keys_are_vectors, kIndexKeysAreVectors, false)

/// body(quad_of), once; quad_of(key, first of the elements).
template <class Hooks, class Args, class Body>
__device__ __forceinline__ void with_index_keys(const Args& args, int b, const Body& body) {
  if constexpr (index_keys_are_vectors<Hooks>()) {
    if (Hooks::index_k_has_quads(args)) {
      body([&](int k, int d) {
        return *reinterpret_cast<const float4*>(Hooks::index_k_at(args, k, 0, b) + d);
      });
      return;
    }
  }
  body([&](int k, int d) {
    return float4{Hooks::index_k(args, k, d, b), Hooks::index_k(args, k, d + 1, b),
                  Hooks::index_k(args, k, d + 2, b), Hooks::index_k(args, k, d + 3, b)};
  });
}

}  // namespace lacuna
