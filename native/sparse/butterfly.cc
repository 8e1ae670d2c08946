// SPDX-License-Identifier: Apache-2.0
#include "sparse/butterfly.h"

namespace coll {
std::vector<ButterflyLayer> butterfly(const std::vector<int>& degrees, int rank,
                                      const std::vector<std::uint64_t>& bounds) {
  std::vector<ButterflyLayer> layers;
  std::size_t first = 0, parts = bounds.size() - 1;  // of those at the end that are shared out
  int stride = 1;
  for (const int degree : degrees) {
    ButterflyLayer layer;
    layer.me = rank / stride % degree;
    parts /= static_cast<std::size_t>(degree);
    for (int j = 0; j < degree; ++j) {
      layer.team.push_back(rank + (j - layer.me) * stride);
      layer.bounds.push_back(bounds[first + static_cast<std::size_t>(j) * parts]);
    }
    layer.bounds.push_back(bounds[first + static_cast<std::size_t>(degree) * parts]);
    first += static_cast<std::size_t>(layer.me) * parts;
    stride *= degree;
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<int> usual_degrees(int p) {
  if (p <= 1) return {};
  if (p <= kFewRanks) return {p};
  int least = p;  // the smallest factor from the square root on
  for (int d = 2; d * d <= p; ++d) {
    if (p % d == 0) least = p / d;
  }
  return least == p ? std::vector<int>{p} : std::vector<int>{least, p / least};
}

}  // namespace coll
