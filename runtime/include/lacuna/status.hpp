// How calls of lacuna.hpp end: by an Error, or with a Status. Part of lacuna.hpp, which includes
// it.
#ifndef LACUNA_STATUS_HPP_
#define LACUNA_STATUS_HPP_

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "lacuna/lacuna.h"

// What is compiled without exceptions differs.
#if defined(__cpp_exceptions)
#define LACUNA_ABI_NAMESPACE v1
#else
#define LACUNA_ABI_NAMESPACE v1_without_exceptions
#endif

namespace lacuna {
inline namespace LACUNA_ABI_NAMESPACE {

/// A status other than LACUNA_OK, with the rendered diagnostics as what().
class Error : public std::runtime_error {
 public:
  Error(lacuna_status status, const std::string& text, std::string json)
      : std::runtime_error(text), status_(status), json_(std::move(json)) {}
  lacuna_status status() const noexcept { return status_; }
  /// {"diagnostics": [...]}
  const std::string& json() const noexcept { return json_; }

 private:
  lacuna_status status_;
  std::string json_;
};

/// How a call that throws nothing has ended; of a failure what an Error would have said.
struct Status {
  lacuna_status code = LACUNA_OK;
  std::string text = {};
  std::string json = {};  ///< {"diagnostics": [...]}
  explicit operator bool() const noexcept { return code == LACUNA_OK; }
};

namespace detail {
/// Of the call that this thread has just made.
inline Status status_of(lacuna_status code) {
  if (code == LACUNA_OK) return {};
  return {code, lacuna_last_error(), lacuna_last_error_json()};
}

#if defined(__cpp_exceptions)
inline void check(lacuna_status status) {
  if (status != LACUNA_OK) throw Error(status, lacuna_last_error(), lacuna_last_error_json());
}
/// What a call that takes a Status returns.
template <class Call>
auto checked(const Call& call) {
  Status status;
  auto result = call(status);
  if (!status) throw Error(status.code, status.text, status.json);
  return result;
}
#endif

/// What an accessor of the C ABI returned for a handle, which a moved-from object lacks.
inline std::string text_of([[maybe_unused]] const void* handle, const char* text) {
#if defined(__cpp_exceptions)
  if (handle == nullptr) check(LACUNA_ERROR_INPUT);
#endif
  return text;
}

/// One call of the C ABI that may call back. Exceptions cannot pass through C: the first one waits
/// here until the call has returned.
class CallingBack {
 public:
  CallingBack() : outer_(innermost_) { innermost_ = this; }
  CallingBack(const CallingBack&) = delete;
  ~CallingBack() { innermost_ = outer_; }

#if defined(__cpp_exceptions)
  /// Call it when everything that the C call has made is owned.
  void check(lacuna_status status) const {
    if (thrown_) std::rethrow_exception(thrown_);
    detail::check(status);
  }
#endif

  /// In a handler of a callback.
  static void keep() noexcept {
    if (innermost_ != nullptr && !innermost_->thrown_)
      innermost_->thrown_ = std::current_exception();
  }

 private:
  static inline thread_local CallingBack* innermost_ = nullptr;
  CallingBack* outer_;
  std::exception_ptr thrown_;
};
}  // namespace detail

}  // namespace LACUNA_ABI_NAMESPACE
}  // namespace lacuna
#endif
