// SPDX-License-Identifier: Apache-2.0
#include "probe/own_work.h"

#include <vector>

#include "probe/samples.h"

namespace coll {

OwnWork::OwnWork(const ProbedWork& work, const Figures::Points& sizes)
    : work_(work),
      sizes_(sizes),
      data_(std::make_unique<float[]>(static_cast<std::size_t>(sizes.back()) / sizeof(float))) {}

template <class F>
double OwnWork::timed(double seconds, F f) {
  constexpr std::size_t kLeast = 5, kMost = 2000;
  std::vector<double> samples;
  const double end = probe_clock() + seconds;
  f();
  for (double now = probe_clock(); samples.size() < kMost;) {
    if (now >= end && samples.size() >= kLeast) break;
    f();
    const double then = probe_clock();
    samples.push_back(then - now);
    now = then;
  }
  return typical(samples);
}

void OwnWork::measure(Meeting& meeting, double seconds, Figures& figures) {
  constexpr int kWays = 3;
  const double each = seconds / (kWays * CostCurve::kPoints);
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    // Two operands and a result have the size together.
    const std::size_t n = static_cast<std::size_t>(sizes_[i]) / 3 / sizeof(float);
    const std::size_t bytes = n * sizeof(float);
    float *a = data_.get(), *b = a + n, *c = b + n;
    const auto per_byte = [&](auto f) { return timed(each, f) / static_cast<double>(bytes); };
    meeting.line_up();
    figures.add[i] = per_byte([&] { work_.add(c, a, b, bytes); });
    // The same data: from that of the three which has rested longest to the next one.
    int turn = 0;
    const auto move = [&](bool around) {
      turn = (turn + 2) % 3;
      work_.copy(a + static_cast<std::size_t>((turn + 1) % 3) * n,
                 a + static_cast<std::size_t>(turn) * n, bytes, around);
    };
    figures.copy[i] = per_byte([&] { move(false); });
    figures.stream[i] = per_byte([&] { move(true); });
  }
  float* a = data_.get();
  figures.op = timed(each, [&] { work_.add(a, a + 16, a + 32, 16 * sizeof(float)); });
}

}  // namespace coll
