// The text of a spec. Part of lacuna.hpp, which includes it.
#ifndef LACUNA_SPEC_HPP_
#define LACUNA_SPEC_HPP_

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "lacuna/status.hpp"

namespace lacuna {
inline namespace LACUNA_ABI_NAMESPACE {

/// The text of a spec and the name that errors show for it.
class Spec {
 public:
  static Spec parse(std::string text, std::string path = "<memory>") {
    return Spec(std::move(text), std::move(path));
  }
  /// Where it fails the text is empty.
  static Spec load(const std::string& path, Status& status) {
    std::ifstream file(path, std::ios::binary);
    status = {};
    if (!file) status = {LACUNA_ERROR_INPUT, path + ": error: cannot be read", "{}"};
    if (!file) return Spec("", path);
    return Spec({std::istreambuf_iterator<char>(file), {}}, path);
  }
#if defined(__cpp_exceptions)
  static Spec load(const std::string& path) {
    return detail::checked([&](Status& status) { return load(path, status); });
  }
#endif
  const std::string& text() const { return text_; }
  const std::string& path() const { return path_; }

 private:
  Spec(std::string text, std::string path) : text_(std::move(text)), path_(std::move(path)) {}
  std::string text_, path_;
};

}  // namespace LACUNA_ABI_NAMESPACE
}  // namespace lacuna
#endif
