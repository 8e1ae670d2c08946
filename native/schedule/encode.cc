// SPDX-License-Identifier: Apache-2.0
#include "schedule/encode.h"

#include "base/error.h"

namespace coll {
namespace {

void put_ranges(std::vector<std::int32_t>& out, std::span<const CellRange> ranges) {
  out.push_back(static_cast<std::int32_t>(ranges.size()));
  for (const CellRange& r : ranges) {
    out.insert(out.end(), {static_cast<std::int32_t>(r.buffer), r.first, r.cells});
  }
}

class Reader {
 public:
  explicit Reader(std::span<const std::int32_t> data) : data_(data) {}

  std::int32_t next() {
    if (at_ >= data_.size()) throw Error(Status::invalid_argument, "encoded schedule: too short");
    return data_[at_++];
  }
  // A number of things that each take at least one word: bounds what a bad array can allocate.
  std::uint32_t size() {
    const std::int32_t n = next();
    if (n < 0 || static_cast<std::size_t>(n) > data_.size() - at_) {
      throw Error(Status::invalid_argument, "encoded schedule: impossible length");
    }
    return static_cast<std::uint32_t>(n);
  }
  std::int32_t within(std::int32_t limit, const char* what) {
    const std::int32_t v = next();
    if (v < 0 || v >= limit) {
      throw Error(Status::invalid_argument, std::string("encoded schedule: impossible ") + what);
    }
    return v;
  }
  Slice ranges(Program& program) {
    Slice slice{static_cast<std::uint32_t>(program.range_pool.size()), size()};
    for (std::uint32_t i = 0; i < slice.count; ++i) {
      const auto buffer = static_cast<Buffer>(within(kBuffers, "buffer"));
      const int first = next();
      program.range_pool.push_back({buffer, first, next()});
    }
    return slice;
  }
  bool done() const { return at_ == data_.size(); }

 private:
  std::span<const std::int32_t> data_;
  std::size_t at_ = 0;
};

Step read_step(Reader& reader, Program& program) {
  Step step{.op = static_cast<Op>(reader.within(4, "operation")), .round = reader.next()};
  step.shape = static_cast<Shape>(reader.within(2, "shape"));
  step.peers = {static_cast<std::uint32_t>(program.peer_pool.size()), reader.size()};
  for (std::uint32_t i = 0; i < step.peers.count; ++i) program.peer_pool.push_back(reader.next());
  step.source = reader.ranges(program);
  step.target = reader.ranges(program);
  return step;
}

}  // namespace

std::vector<std::int32_t> encode(const Schedule& s) {
  std::vector<std::int32_t> out = {kScheduleMagic, kEncodingVersion, static_cast<int>(s.kind),
                                   s.p,            s.root,           s.chunks};
  for (const Program& program : s.programs) {
    out.push_back(static_cast<std::int32_t>(program.steps.size()));
    for (const Step& step : program.steps) {
      out.insert(out.end(),
                 {static_cast<int>(step.op), step.round, static_cast<int>(step.shape)});
      const auto peers = program.peers(step);
      out.push_back(static_cast<std::int32_t>(peers.size()));
      out.insert(out.end(), peers.begin(), peers.end());
      put_ranges(out, program.source(step));
      put_ranges(out, program.target(step));
    }
  }
  return out;
}

Schedule decode(std::span<const std::int32_t> data) {
  Reader reader(data);
  if (reader.next() != kScheduleMagic || reader.next() != kEncodingVersion) {
    throw Error(Status::invalid_argument, "encoded schedule: wrong magic number or version");
  }
  Schedule s;
  s.kind = static_cast<Kind>(reader.within(kKinds, "kind"));
  s.p = static_cast<int>(reader.size());
  s.root = reader.next();
  s.chunks = reader.next();
  s.programs.resize(static_cast<std::size_t>(s.p));
  for (Program& program : s.programs) {
    const std::uint32_t steps = reader.size();
    for (std::uint32_t i = 0; i < steps; ++i) program.steps.push_back(read_step(reader, program));
  }
  if (!reader.done()) throw Error(Status::invalid_argument, "encoded schedule: words left over");
  return s;
}

}  // namespace coll
