// SPDX-License-Identifier: Apache-2.0
// Tori and rings: dimension-ordered routing (Dally & Seitz, IEEE Transactions on Computers 36(5),
// 1987), by the shorter way round.
#include <algorithm>
#include <functional>
#include <numeric>

#include "topology/network.h"

namespace coll {
namespace {

class Torus final : public Network {
 public:
  Torus(const std::vector<int>& sides, const PortCosts& c)
      : Network(std::accumulate(sides.begin(), sides.end(), 1, std::multiplies<>())),
        sides_(sides) {
    int stride = 1;
    for (std::size_t d = 0; d < sides.size(); ++d) {
      const std::string axis = sides.size() == 1 ? "" : " " + std::string(1, kAxes[d % 4]);
      for (const char* sign : {"up", "down"}) {
        const int kind = add_class({"link" + axis + " " + sign, c.latency, 1 / c.rate});
        first_.push_back(add_links(kind, ranks()));
      }
      strides_.push_back(stride);
      stride *= sides[d];
    }
  }

  void route(int from, int to, Way& way) const override {
    for (std::size_t d = 0; d < sides_.size(); ++d) {
      const int n = sides_[d], stride = strides_[d];
      const int here = from / stride % n, there = to / stride % n;
      const int ahead = (there - here + n) % n;
      // Half way round, every second rank takes the other way.
      const bool up = 2 * ahead < n || (2 * ahead == n && here % 2 == 0);
      const int hops = up ? ahead : n - ahead;
      // Up to where numbers begin anew, and on from there.
      const int step = up ? stride : -stride, before = std::min(hops, up ? n - here : here + 1);
      const int link = first_[2 * d + (up ? 0 : 1)] + from;
      way.push_back({.first = link, .count = before, .step = step});
      way.push_back({.first = link + (before - n) * step, .count = hops - before, .step = step});
      from += (there - here) * stride;
    }
  }

 private:
  static constexpr const char* kAxes = "xyzw";
  std::vector<int> sides_, strides_, first_;
};

}  // namespace

std::unique_ptr<Network> torus_network(const std::vector<int>& sides, const PortCosts& costs) {
  return std::make_unique<Torus>(sides, costs);
}

}  // namespace coll
