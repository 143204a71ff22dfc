// Ctrl-C and SIGTERM. NVRTC puts handlers of its own in the place of everybody's while it compiles,
// which end the process without a word. So no handler is relied on: both signals are blocked in all
// threads, and one thread waits for them.
//
//   signal --> waiting thread --> Interrupts alive, first one: a question, which the verb answers
//                             \-> else: one line on stderr, and the end (130, 143); where files are
//                                 being written, once they are all there or none
#pragma once

#include "cache/files/file_descriptor.hpp"

namespace lacuna::tools {

/// Blocks both signals in this thread, and so in all that it starts, and starts the thread that
/// waits for them. To be called first. A signal that was blocked or ignored when this process was
/// started stays so.
void start_waiting_for_interrupts();

/// While it lives, the first Ctrl-C or SIGTERM only asks to stop; the second one ends the process.
/// One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  int signal() const;  ///< the one that asked; 0: none
  bool arrived() const { return signal() != 0; }
  /// Readable from then on; -1 if there is no descriptor to be had.
  int descriptor() const { return event_.get(); }

 private:
  cache::FileDescriptor event_;
};

/// While one lives, no signal but a second one ends the process between two steps of writing files.
class UnbrokenWriting {
 public:
  UnbrokenWriting();
  /// Of the last one of a process that is about to end this does not return.
  ~UnbrokenWriting();
  UnbrokenWriting(const UnbrokenWriting&) = delete;
  UnbrokenWriting& operator=(const UnbrokenWriting&) = delete;

  /// Whether the process is about to end: what is not in its place yet is to be taken back.
  bool is_stopping() const;
};

}  // namespace lacuna::tools
