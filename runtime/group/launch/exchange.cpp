#include "runtime/group/launch/exchange.hpp"

#include "runtime/group/launch/copies.hpp"

namespace lacuna::group {
namespace {

enum Flag : std::size_t { kFinished, kFirstOfChunks };
constexpr std::size_t kArrived = 0, kReturned = 1, kFlagsOfChunk = 2;
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

/// One copy for each post: the driver has no copies of several lines between two GPUs.
bool write_posts(const ExchangeContext& context, const Phase& phase, int peer) {
  const Device* device = context.plan.kernel->group->engine->gpu.get();
  unsigned char* const theirs = context.plan.shared.of_rank[static_cast<std::size_t>(peer)];
  for (const Post& post : phase.posts) {
    if (post.peer != peer || !post.is_send) continue;
    const std::size_t bytes = context.plan.traffic.problem.bytes_of(post.tensor, post.rows);
    const Lines whole = {theirs + post.peer_offset,
                         context.places.address_of(post.tensor, post.place),
                         bytes,
                         bytes,
                         bytes,
                         1};
    if (!copy_lines(device, whole, context.outgoing, context.diagnostics)) return false;
  }
  return true;
}

/// To all others, and until all others have written theirs.
bool write_phase(const ExchangeContext& context, const Phase& phase, std::size_t flag,
                 bool is_first) {
  const auto write = [&](int peer) {
    return (!is_first || await(context, peer, kFinished, context.number - 1, context.outgoing)) &&
           write_posts(context, phase, peer) && tell(context, peer, flag, context.outgoing);
  };
  const auto wait = [&](int peer) {
    return await(context, peer, flag, context.number, context.incoming);
  };
  return each_peer(ranks_of(context), write) && each_peer(ranks_of(context), wait);
}

bool send_messages(const ExchangeContext& context, const Phase& phase) {
  GroupPlan& plan = context.plan;
  const Communicator& ranks = ranks_of(context);
  // A rank without messages takes part, too, so that every launch notices a rank that is lost.
  plan.messages.clear();
  for (const Post& post : phase.posts) {
    plan.messages.push_back({context.places.address_of(post.tensor, post.place),
                             plan.traffic.problem.bytes_of(post.tensor, post.rows), post.peer,
                             post.is_send});
  }
  return ranks.exchange(ranks.state.get(), plan.messages, context.outgoing, context.diagnostics);
}

bool run_phase(const ExchangeContext& context, const Phase& phase, std::size_t flag,
               bool is_first) {
  return copy_all(context.places, phase.before, context.outgoing, context.diagnostics) &&
         (context.copies() ? write_phase(context, phase, flag, is_first)
                           : send_messages(context, phase)) &&
         copy_all(context.places, phase.after, context.incoming, context.diagnostics);
}

}  // namespace

bool exchange_inputs(const ExchangeContext& context, std::size_t chunk) {
  return run_phase(context, context.plan.schedule.chunks[chunk].inputs, chunk_flag(chunk, kArrived),
                   /*is_first=*/chunk == 0);
}

bool exchange_results(const ExchangeContext& context, std::size_t chunk) {
  return run_phase(context, context.plan.schedule.chunks[chunk].outputs,
                   chunk_flag(chunk, kReturned), /*is_first=*/false);
}

bool end_exchange(const ExchangeContext& context, CUstream caller) {
  if (!context.copies()) return true;
  return each_peer(ranks_of(context),
                   [&](int peer) { return tell(context, peer, kFinished, caller); });
}

}  // namespace lacuna::group
