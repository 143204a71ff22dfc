// The rows of the field table.
#include "compiler/spec/table/fields.hpp"

namespace lacuna {
namespace {

using enum SpecFieldKind;
using enum Plural;

#define LACUNA_SLOT(member) [](const SpecDraft& draft) -> SpecSlot { return &draft.member; }
constexpr SpecField kFields[] = {
// In the canonical order of the fields.
// clang-format off
#include "compiler/spec/table/attention.def"
#include "compiler/spec/table/params.def"
#include "compiler/spec/table/predictor.def"
#include "compiler/spec/table/computation.def"
#include "compiler/spec/table/branches.def"
    // clang-format on
};
#undef LACUNA_SLOT

}  // namespace

std::span<const SpecField> spec_fields() { return kFields; }

}  // namespace lacuna
