// The work tiles of a consumer warpgroup of the wgmma family, whatever the operands: as they come,
// in runs of steps that have tiles of it, and those that see nothing.
//
//   for_each_row        receives the first step of each row: attend_row, then results and reports
//     for_each_run      of a row: attend_run from step to step, until one is passed on
#pragma once

#include "attend/wgmma/consumers/consumer_state.cuh"
#include "attend/wgmma/consumers/row_results.cuh"
#include "attend/wgmma/consumers/tile_decision.cuh"

namespace lacuna {

template <class State>
__device__ __forceinline__ void begin_row(State& at) {
  using Shape = typename State::Shape;
  at.softmax = {};
  if constexpr (Shape::kHasGate && !Shape::kLooksAhead)
    at.gate_row = gate_of_row<typename State::Config, typename State::Hooks>(at.args, at.row);
  at.gate.begin_row(at.row.q1 - first_row_of_warp<typename State::Config>(at.row));
#pragma unroll
  for (int n = 0; n < Shape::kColumnBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) at.output[n][i] = 0.0f;
  }
  if (reports(at, at.row)) open_reports<typename State::Config>(at.args, at.row, at.warpgroup);
  at.is_fresh = true;
  if constexpr (gates_rows<typename State::Config>())
    at.row_gates.begin_row(at.reload_row().share == 0);
}

/// Of a block of several rows: passes on the step just received, and those behind it that have no
/// tile of this row either. True: `step` is one that has. No product may be under way.
template <class State>
__device__ __forceinline__ bool passes_on(State& at, typename State::Message& step) {
  using Message = typename State::Message;
  while (step.has(Message::kSkipped)) {
    const bool is_last = step.has(Message::kLastOfRow);
    at.release_keys();
    const typename State::Values values = at.values();
    if (!is_last) step = at.receive();
    at.await(at.smem.control()->v_full, values);
    at.release_values(values);
    if (is_last) return false;
  }
  return true;
}

/// The same within a run, while the product with V of step `due` is still to be issued: true as
/// above. The slot that it will read takes no other values before then, and loads come in order, so
/// no more steps are passed on than there are slots. False: `step` ends the run.
template <class State, class Step>
__device__ __forceinline__ bool passes_within_run(State& at, typename State::Message& step,
                                                  const Step& due) {
  using Message = typename State::Message;
  while (at.keys.count - due.count < State::Config::kValueStages &&
         !step.has(Message::kLastOfRow)) {
    at.release_keys();
    const typename State::Values values = at.values();
    step = at.receive();
    at.await(at.smem.control()->v_full, values);
    at.release_values(values);
    if (!step.has(Message::kSkipped)) return true;
  }
  return false;
}

/// Does the row have a tile at all? Steps before its first, or all, are passed on.
template <class State>
__device__ __forceinline__ bool takes_part(State& at, typename State::Message& first) {
  if constexpr (State::Shape::kOwnRows) {
    return !first.has(State::Message::kSkipped) || passes_on(at, first);
  } else {
    return first.tiles[0].exists();
  }
}

/// attend_run(step) for each run of steps that have tiles of this row; it leaves `step` at the
/// row's last, or at one that is passed on.
template <class State, class AttendRun>
__device__ __forceinline__ void for_each_run(State& at, typename State::Message& step,
                                             AttendRun attend_run) {
  if constexpr (State::Shape::kOwnRows) {
    do attend_run(step);
    while (step.has(State::Message::kSkipped) && passes_on(at, step));
  } else {
    attend_run(step);
  }
}

/// A work tile that sees nothing: gives back its queries, or its one step, unread, and writes
/// zeros.
template <class State>
__device__ __forceinline__ void pass_over(State& at) {
  using Shape = typename State::Shape;
  auto& control = *at.smem.control();
  if constexpr (Shape::kOwnRows) {
    at.finish_store();
    at.await(control.q_full, at.queries);
    at.release_queries();
  } else {
    at.release_keys();
    if constexpr (Shape::kLooksAhead) {
      if (lane_index() == 0) State::Smem::barrier(control.polled[at.keys.before().slot()]).arrive();
    } else {
      at.await(control.v_full, at.values());
      at.release_values(at.values());
    }
  }
  write_output_of_none(at);
}

/// attend_row(first step) for each row with tiles; it leaves `output` and `softmax`. The first step
/// of a block is not that of a warpgroup with a row of its own.
template <class State, class AttendRow>
__device__ __forceinline__ void for_each_row(State& at, AttendRow attend_row) {
  using Message = typename State::Message;
  for (Message first = at.receive(); !first.has(Message::kEnd); first = at.receive()) {
    at.row = at.reload_row();
    begin_row(at);
    if (takes_part(at, first)) {
      attend_row(first);
      write_output(at);
    } else {
      pass_over(at);
      // Reconverge; otherwise the compiler assumes divergence and adds WARPSYNCs.
      __syncwarp();
    }
    write_rest(at);
    at.rows.advance();
  }
  at.finish_store();
}

}  // namespace lacuna
