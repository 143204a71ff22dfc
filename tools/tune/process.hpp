// The child process of `lacuna tune`: this same command, with a socket as its standard input and
// output. Whatever a candidate does to it, this process goes on.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "cache/files/file_descriptor.hpp"

namespace lacuna::tools {

/// Ctrl-C and SIGTERM become something to ask for, from construction to destruction; children do
/// not see them either.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool arrived();                         ///< since construction
  int signal() const { return signal_; }  ///< the first that arrived; 0: none
  int descriptor() const { return file_.get(); }

 private:
  cache::FileDescriptor file_;
  sigset_t before_{};
  int signal_ = 0;
};

class TuneProcess {
 public:
  TuneProcess() = default;
  ~TuneProcess() { stop(); }
  TuneProcess(const TuneProcess&) = delete;
  TuneProcess& operator=(const TuneProcess&) = delete;

  /// "" or why there is no child.
  std::string start();
  void stop();
  bool is_running() const { return child_ > 0; }

  enum class End { kReply, kDied, kHung, kInterrupted };
  struct Reply {
    End end = End::kDied;
    nlohmann::ordered_json message;
    std::string detail;  ///< "killed by signal 11 (Segmentation fault)"
  };
  /// Sends a request and waits for its reply; a child that gives none is ended.
  Reply ask(const nlohmann::ordered_json& request, std::chrono::duration<double> patience,
            Interrupts& interrupts);

 private:
  Reply end_of_child(End end);
  bool send_line(const std::string& line);

  pid_t child_ = -1;
  cache::FileDescriptor socket_;
  std::string received_;  ///< of the next reply
};

}  // namespace lacuna::tools
