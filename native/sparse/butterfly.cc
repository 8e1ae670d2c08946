// SPDX-License-Identifier: Apache-2.0
#include "sparse/butterfly.h"

namespace coll {
namespace {

constexpr int kFew = 16;  // ranks that exchange with one another

std::vector<std::uint64_t> parts_of(std::uint64_t first, std::uint64_t end, int parts) {
  const auto n = static_cast<std::uint64_t>(parts);
  const std::uint64_t part = (end - first) / n, longer = (end - first) % n;
  std::vector<std::uint64_t> bounds(n + 1, first);
  for (std::uint64_t c = 0; c < n; ++c) bounds[c + 1] = bounds[c] + part + (c < longer ? 1 : 0);
  return bounds;
}

}  // namespace

std::vector<ButterflyLayer> butterfly(const std::vector<int>& degrees, int rank,
                                      std::uint64_t length) {
  std::vector<ButterflyLayer> layers;
  std::uint64_t first = 0, end = length;
  int stride = 1;
  for (const int degree : degrees) {
    ButterflyLayer layer;
    layer.me = rank / stride % degree;
    for (int j = 0; j < degree; ++j) layer.team.push_back(rank + (j - layer.me) * stride);
    layer.bounds = parts_of(first, end, degree);
    const auto mine = static_cast<std::size_t>(layer.me);
    first = layer.bounds[mine];
    end = layer.bounds[mine + 1];
    stride *= degree;
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<int> usual_degrees(int p) {
  if (p <= 1) return {};
  if (p <= kFew) return {p};
  int least = p;  // the smallest factor from the square root on
  for (int d = 2; d * d <= p; ++d) {
    if (p % d == 0) least = p / d;
  }
  return least == p ? std::vector<int>{p} : std::vector<int>{least, p / least};
}

}  // namespace coll
