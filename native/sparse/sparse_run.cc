// SPDX-License-Identifier: Apache-2.0
#include "sparse/sparse_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "sparse/aligned_sum.h"
#include "sparse/quantised_stream.h"

namespace coll {
namespace {

SparseStream sum_of(const SparseTerms& terms, std::span<const SparseStream> streams, Shape shape) {
  return terms.summation == Summation::merged || streams.size() == 1
             ? sum(terms, streams)
             : aligned_sum(terms, streams, shape == Shape::balanced);
}

}  // namespace

std::vector<std::uint64_t> equal_bounds(std::uint64_t length, int parts) {
  const auto n = static_cast<std::uint64_t>(parts);
  const std::uint64_t part = length / n, longer = length % n;
  std::vector<std::uint64_t> bounds(n + 1, 0);
  for (std::uint64_t c = 0; c < n; ++c) bounds[c + 1] = bounds[c] + part + (c < longer ? 1 : 0);
  return bounds;
}

Stretches::Stretches(std::uint64_t length, int chunks) : bounds_(equal_bounds(length, chunks)) {}

SparseRun::SparseRun(const SparseTerms& terms, const Layout& layout, int rank, Program program,
                     Stretches stretches, std::vector<SparseStream> input, std::uint64_t call)
    : terms_(terms),
      layout_(layout),
      rank_(rank),
      program_(std::move(program)),
      stretches_(std::move(stretches)),
      call_(call) {
  for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
    const int cells = layout_.cells(rank, buffer);
    for (int i = 0; i < cells; ++i) {
      cells_[at(buffer)].push_back(stretches_.of(layout_.chunk(rank, buffer, i)));
    }
  }
  if (input.size() != cells_[at(Buffer::input)].size()) {
    throw Error(Status::internal, "a sparse call with another number of streams than cells");
  }
  cells_[at(Buffer::input)] = std::move(input);
  for (const Step& step : program_.steps) {
    if (step.op == Op::recv_reduce) last_fold_ = step.round;
  }
}

std::vector<SparseStream> SparseRun::read(std::span<const CellRange> ranges) {
  std::vector<SparseStream> streams;
  for (const CellRange& range : ranges) {
    for (int i = 0; i < range.cells; ++i) streams.push_back(cell(range, i));
  }
  return streams;
}

void SparseRun::write(std::span<const CellRange> ranges, const std::vector<SparseStream>& streams) {
  std::size_t next = 0;
  for (const CellRange& range : ranges) {
    for (int i = 0; i < range.cells; ++i) cell(range, i) = streams[next++];
  }
}

std::vector<SparseStream> SparseRun::stretches_of(std::span<const CellRange> ranges) const {
  std::vector<SparseStream> streams;
  for (const CellRange& range : ranges) {
    for (int i = 0; i < range.cells; ++i) {
      streams.push_back(stretches_.of(layout_.chunk(rank_, range.buffer, range.first + i)));
    }
  }
  return streams;
}

bool SparseRun::open_round() {
  const std::vector<Step>& steps = program_.steps;
  outgoing_.clear();
  incoming_.clear();
  begin_ = end_;
  if (begin_ == steps.size()) return false;
  const int round = steps[begin_].round;
  while (end_ < steps.size() && steps[end_].round == round) ++end_;
  for (std::size_t i = begin_; i < end_; ++i) {
    if (steps[i].op == Op::send) send(steps[i]);
    if (steps[i].op == Op::recv || steps[i].op == Op::recv_reduce) expect(steps[i]);
  }
  rounds_ += outgoing_.empty() && incoming_.empty() ? 0 : 1;
  return true;
}

// All ranks hold the bits that the owner's message says, the owner too.
void SparseRun::complete(SparseStream& stream) const {
  stream = made_dense(terms_, stream);
  if (terms_.quantise_bits > 0 && stream.length > 0 && stream.quantised.empty()) {
    stream = quantised(terms_, stream);
  }
}

void SparseRun::send(const Step& step) {
  const auto source = program_.source(step);
  if (dense_when_folded_ && step.round > last_fold_) {
    for (const CellRange& range : source) {
      for (int i = 0; i < range.cells; ++i) complete(cell(range, i));
    }
  }
  const SparseMessage message = packed(terms_, call_, read(source));
  for (const int peer : program_.peers(step)) {
    outgoing_.push_back({peer, message});
    sent_bytes_ += message.size;
    ++sent_messages_;
  }
}

void SparseRun::expect(const Step& step) {
  const auto stretches = stretches_of(program_.target(step));
  std::uint64_t elements = 0;
  for (const SparseStream& s : stretches) elements += s.length;
  const std::size_t most = most_bytes(terms_, stretches.size(), elements);
  for (const int peer : program_.peers(step)) {
    if (peer != kSelf) incoming_.push_back({peer, most});
  }
}

void SparseRun::close_round() {
  const std::vector<Step>& steps = program_.steps;
  outgoing_.clear();
  std::size_t next = 0;
  for (std::size_t i = begin_; i < end_; ++i) {
    const Step& step = steps[i];
    if (step.op == Op::recv) {
      const auto target = program_.target(step);
      write(target, arrived(incoming_[next++], stretches_of(target)));
    } else if (step.op == Op::recv_reduce) {
      fold(step, next);
    } else if (step.op != Op::send) {
      do_here(step);
    }
  }
  if (begin_ < end_) closed_ = steps[begin_].round;
}

SparseStream& SparseRun::owned() noexcept {
  for (const Step& step : program_.steps) {
    if (step.op != Op::recv_reduce || step.round != last_fold_) continue;
    return cell(program_.target(step).front(), 0);
  }
  return cells_[at(Buffer::output)].front();
}

std::vector<SparseStream> SparseRun::arrived(Incoming& incoming,
                                             std::span<const SparseStream> stretches) {
  const std::span<const std::byte> bytes = incoming.parcel.bytes();
  try {
    return unpacked(terms_, call_, bytes, incoming.parcel.release(), stretches);
  } catch (const Error& error) {
    throw Error(error.status, "rank " + std::to_string(incoming.from) + ": " + error.what(),
                incoming.from);
  }
}

void SparseRun::fold(const Step& step, std::size_t& next) {
  const auto target = program_.target(step);
  const auto stretches = stretches_of(target);
  const auto order = program_.peers(step);
  std::vector<std::vector<SparseStream>> operands;
  for (const int peer : order) {
    operands.push_back(peer == kSelf ? read(program_.source(step))
                                     : arrived(incoming_[next++], stretches));
  }
  std::vector<SparseStream> folded;
  for (std::size_t c = 0; c < stretches.size(); ++c) {
    std::vector<SparseStream> column;
    for (const auto& operand : operands) column.push_back(operand[c]);
    folded.push_back(sum_of(terms_, column, step.shape));
  }
  write(target, folded);
}

void SparseRun::do_here(const Step& step) {
  const auto target = program_.target(step);
  std::vector<SparseStream> streams = read(program_.source(step));
  if (step.op == Op::reduce) {
    const std::vector<SparseStream> own = read(target);
    for (std::size_t c = 0; c < own.size(); ++c) {
      const SparseStream both[] = {streams[c], own[c]};
      streams[c] = sum_of(terms_, both, step.shape);
    }
  }
  write(target, streams);
}

}  // namespace coll
