#include "runtime/group/launch/exchange.hpp"

#include "runtime/group/launch/copies.hpp"

namespace lacuna::group {
namespace {

enum Flag : std::size_t { kFinished, kTaken, kFirstOfChunks };
constexpr std::size_t kArrived = 0, kReady = 1, kFlagsOfChunk = 2;
/// Each chunk has at most twice as many heads as came before it (chunks.hpp).
static_assert(kFirstOfChunks + kFlagsOfChunk * 31 <= kFlags);

const Communicator& ranks_of(const ExchangeContext& context) {
  return context.plan.kernel->group->communicator;
}

std::size_t chunk_flag(std::size_t chunk, std::size_t which) {
  return kFirstOfChunks + kFlagsOfChunk * chunk + which;
}

bool tell(const ExchangeContext& context, int peer, std::size_t flag, CUstream stream) {
  const Communicator& ranks = ranks_of(context);
  return ranks.set_flag(ranks.state.get(), peer, flag, context.number, stream, context.diagnostics);
}

bool await(const ExchangeContext& context, int peer, std::size_t flag, std::uint32_t number,
           CUstream stream) {
  const Communicator& ranks = ranks_of(context);
  return ranks.await_flag(ranks.state.get(), peer, flag, number, stream, context.diagnostics);
}

/// All other ranks. Each begins behind itself, so that not all of them write to one at a time.
template <class Visit>
bool each_peer(const Communicator& ranks, Visit visit) {
  for (int step = 1; step < ranks.size; ++step) {
    if (!visit((ranks.rank + step) % ranks.size)) return false;
  }
  return true;
}

/// What is sent to a peer, or received from it. One copy for each: the driver has no copies of
/// several lines between two GPUs.
bool copy_posts(const ExchangeContext& context, const Phase& phase, int peer, bool is_send,
                CUstream stream) {
  const Device* device = context.plan.kernel->group->engine->gpu.get();
  unsigned char* const theirs = context.plan.shared.of_rank[static_cast<std::size_t>(peer)];
  for (const Post& post : phase.posts) {
    if (post.peer != peer || post.is_send != is_send) continue;
    unsigned char* const own = context.places.address_of(post.tensor, post.place);
    unsigned char* const other = theirs + post.peer_offset;
    const std::size_t bytes =
        static_cast<std::size_t>(post.rows) * context.plan.traffic.problem.row_bytes(post.tensor);
    const Lines whole = {is_send ? other : own, is_send ? own : other, bytes, bytes, bytes, 1};
    if (!copy_lines(device, whole, stream, context.diagnostics)) return false;
  }
  return true;
}

bool write_inputs(const ExchangeContext& context, std::size_t chunk) {
  const Phase& phase = context.plan.schedule.chunks[chunk].inputs;
  const std::size_t arrived = chunk_flag(chunk, kArrived);
  const auto write = [&](int peer) {
    return (chunk > 0 || await(context, peer, kFinished, context.number - 1, context.outgoing)) &&
           copy_posts(context, phase, peer, true, context.outgoing) &&
           tell(context, peer, arrived, context.outgoing);
  };
  const auto wait = [&](int peer) {
    return await(context, peer, arrived, context.number, context.incoming);
  };
  return each_peer(ranks_of(context), write) && each_peer(ranks_of(context), wait);
}

bool read_results(const ExchangeContext& context, std::size_t chunk) {
  const Phase& phase = context.plan.schedule.chunks[chunk].outputs;
  const bool is_last = chunk + 1 == context.plan.schedule.chunks.size();
  const std::size_t ready = chunk_flag(chunk, kReady);
  const auto offer = [&](int peer) { return tell(context, peer, ready, context.outgoing); };
  const auto read = [&](int peer) {
    return await(context, peer, ready, context.number, context.incoming) &&
           copy_posts(context, phase, peer, false, context.incoming) &&
           (!is_last || tell(context, peer, kTaken, context.incoming));
  };
  const auto wait = [&](int peer) {
    return await(context, peer, kTaken, context.number, context.incoming);
  };
  const Communicator& ranks = ranks_of(context);
  return each_peer(ranks, offer) && each_peer(ranks, read) && (!is_last || each_peer(ranks, wait));
}

bool send_messages(const ExchangeContext& context, const Phase& phase) {
  GroupPlan& plan = context.plan;
  const Communicator& ranks = ranks_of(context);
  // A rank without messages takes part, too, so that every launch notices a rank that is lost.
  plan.messages.clear();
  for (const Post& post : phase.posts) {
    plan.messages.push_back(
        {context.places.address_of(post.tensor, post.place),
         static_cast<std::size_t>(post.rows) * plan.traffic.problem.row_bytes(post.tensor),
         post.peer, post.is_send});
  }
  return ranks.exchange(ranks.state.get(), plan.messages, context.outgoing, context.diagnostics);
}

bool run_phase(const ExchangeContext& context, const Phase& phase, auto exchange) {
  return copy_all(context.places, phase.before, context.outgoing, context.diagnostics) &&
         exchange() && copy_all(context.places, phase.after, context.incoming, context.diagnostics);
}

}  // namespace

bool exchange_inputs(const ExchangeContext& context, std::size_t chunk) {
  const Phase& phase = context.plan.schedule.chunks[chunk].inputs;
  return run_phase(context, phase, [&] {
    return context.copies() ? write_inputs(context, chunk) : send_messages(context, phase);
  });
}

bool exchange_results(const ExchangeContext& context, std::size_t chunk) {
  const Phase& phase = context.plan.schedule.chunks[chunk].outputs;
  return run_phase(context, phase, [&] {
    return context.copies() ? read_results(context, chunk) : send_messages(context, phase);
  });
}

bool end_exchange(const ExchangeContext& context, CUstream caller) {
  if (!context.copies()) return true;
  return each_peer(ranks_of(context),
                   [&](int peer) { return tell(context, peer, kFinished, caller); });
}

}  // namespace lacuna::group
