// Equality of ops: field by field, as the tables name them.
#include "compiler/ir/fields.hpp"

namespace lacuna {

bool operator==(const Input& a, const Input& b) { return equal_fields(a, b); }
bool operator==(const Permute& a, const Permute& b) { return equal_fields(a, b); }
bool operator==(const Unpermute& a, const Unpermute& b) { return equal_fields(a, b); }
bool operator==(const Means& a, const Means& b) { return equal_fields(a, b); }
bool operator==(const MergeBranch& a, const MergeBranch& b) { return equal_fields(a, b); }
bool operator==(const Smooth& a, const Smooth& b) { return equal_fields(a, b); }
bool operator==(const Summarise& a, const Summarise& b) { return equal_fields(a, b); }
bool operator==(const Similarity& a, const Similarity& b) { return equal_fields(a, b); }
bool operator==(const Quantise& a, const Quantise& b) { return equal_fields(a, b); }
bool operator==(const QuantiseValues& a, const QuantiseValues& b) { return equal_fields(a, b); }
bool operator==(const Project& a, const Project& b) { return equal_fields(a, b); }
bool operator==(const Estimate& a, const Estimate& b) { return equal_fields(a, b); }
bool operator==(const Select& a, const Select& b) { return equal_fields(a, b); }
bool operator==(const Compact& a, const Compact& b) { return equal_fields(a, b); }
bool operator==(const Gate& a, const Gate& b) { return equal_fields(a, b); }
bool operator==(const Attend& a, const Attend& b) { return equal_fields(a, b); }

}  // namespace lacuna
