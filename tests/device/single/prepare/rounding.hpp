// quantise/divide.cuh as plain functions.
#pragma once

namespace single {

float scale_of(float largest, float range);

/// The integer of a 16-bit element by one product.
int round_element(float x, float largest, float range);

/// The integer of x by two products; in doubt where they differ.
struct Bracketed {
  int value;
  bool is_in_doubt;
};
Bracketed bracket(float x, float scale);

}  // namespace single
