// SPDX-License-Identifier: Apache-2.0
#include "schedule/encode.h"

#include "base/looks.h"
#include "base/words.h"

namespace coll {
namespace {

void put_ranges(std::vector<std::int32_t>& out, std::span<const CellRange> ranges) {
  out.push_back(static_cast<std::int32_t>(ranges.size()));
  for (const CellRange& r : ranges) {
    out.insert(out.end(), {static_cast<std::int32_t>(r.buffer), r.first, r.cells});
  }
}

Slice read_ranges(WordReader& reader, Program& program) {
  const Slice slice{static_cast<std::uint32_t>(program.range_pool.size()), reader.size()};
  for (std::uint32_t i = 0; i < slice.count; ++i) {
    const auto buffer = static_cast<Buffer>(reader.below(kBuffers, "buffer"));
    const int first = reader.next();
    program.range_pool.push_back({buffer, first, reader.next()});
  }
  return slice;
}

Step read_step(WordReader& reader, Program& program) {
  Step step{.op = static_cast<Op>(reader.below(kOps, "operation")), .round = reader.next()};
  step.shape = static_cast<Shape>(reader.below(2, "shape"));
  step.peers = {static_cast<std::uint32_t>(program.peer_pool.size()), reader.size()};
  for (std::uint32_t i = 0; i < step.peers.count; ++i) program.peer_pool.push_back(reader.next());
  step.source = read_ranges(reader, program);
  step.target = read_ranges(reader, program);
  return step;
}

}  // namespace

std::vector<std::int32_t> encode(const Schedule& s) {
  std::vector<std::int32_t> out = {kScheduleMagic, kEncodingVersion, static_cast<int>(s.kind), s.p,
                                   s.root,         s.chunks};
  for (const Program& program : s.programs) {
    look();
    out.push_back(static_cast<std::int32_t>(program.steps.size()));
    for (const Step& step : program.steps) {
      out.insert(out.end(), {static_cast<int>(step.op), step.round, static_cast<int>(step.shape)});
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
  WordReader reader(data, "encoded schedule");
  reader.expect(kScheduleMagic, "magic number");
  reader.expect(kEncodingVersion, "version");
  Schedule s;
  s.kind = static_cast<Kind>(reader.below(kKinds, "kind"));
  s.p = static_cast<int>(reader.size());
  s.root = reader.next();
  s.chunks = reader.next();
  s.programs.resize(static_cast<std::size_t>(s.p));
  for (Program& program : s.programs) {
    look();
    const std::uint32_t steps = reader.size();
    for (std::uint32_t i = 0; i < steps; ++i) program.steps.push_back(read_step(reader, program));
  }
  reader.expect_end();
  return s;
}

}  // namespace coll
