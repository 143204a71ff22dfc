// A branch as a spec document of its own.
#include "compiler/spec/spec.hpp"

namespace lacuna {
namespace {

/// Places of the branch's values under the names that a spec has for them; what the branch does not
/// say keeps its place in the spec.
std::map<std::string, Span> spans_of_branch(const std::map<std::string, Span>& spans,
                                            const std::string& pointer) {
  std::map<std::string, Span> own;
  for (const auto& [place, span] : spans) {
    if (place == pointer || !place.starts_with(pointer + "/")) continue;
    own.emplace(place.substr(pointer.size()), span);
  }
  own["/branch"] = spans.at(pointer);
  for (const auto& [place, span] : spans) own.emplace(place, span);
  return own;
}

}  // namespace

std::vector<SpecDocument> branch_documents(const SpecDocument& document) {
  if (document.spec.branches.empty()) return {document};
  std::vector<SpecDocument> documents;
  for (std::size_t n = 0; n < document.spec.branches.size(); ++n) {
    documents.push_back({document.spec.branches[n], document.source,
                         spans_of_branch(document.spans, "/branches/" + std::to_string(n))});
  }
  return documents;
}

}  // namespace lacuna
