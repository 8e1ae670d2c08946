// SPDX-License-Identifier: Apache-2.0
// Adasum (Maleki et al., "Scaling Distributed Training with Adaptive Summation", MLSys'21):
// gradients are combined two by two, groups of 1, 2, 4 ... ranks at a time, each rank on its share
// of the vector, which halves from level to level; then all get all shares. Where the number of
// ranks is no power of two, the first pairs of neighbours combine theirs beforehand, and the even
// one of each pair speaks for both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "communicator/message_steps.h"
#include "kernels/adasum.h"

namespace coll {

struct AdasumWish {
  const void* input = nullptr;
  void* output = nullptr;  // may be the input
  std::size_t count = 0;
  Dtype dtype = Dtype::float32;  // floating point
  double timeout = 0;            // seconds; 0: the communicator's
};

class AdasumCall : public MessageSteps {
 protected:
  // The arrays must live as long. Throws Error(invalid_argument).
  AdasumCall(int rank, int ranks, double timeout, const AdasumWish& wish);

 private:
  // What the messages on their way are.
  enum class Stage : std::uint8_t { agreeing, joining, halving, adding, gathering, parting, done };

  Status begin() override;
  bool step(Status& status) override;
  void finish(Stage stage);
  void begin(Stage stage);
  Stage after(Stage stage) const;
  bool takes_part() const noexcept { return place_ >= 0; }
  int rank_at(int place) const noexcept;
  int partner() const noexcept { return rank_at(place_ ^ (1 << level_)); }
  std::byte* values(std::size_t first) noexcept { return vector_.data() + first * size_; }
  void load();
  void store();
  Products products(const std::byte* a, const std::byte* b, std::size_t n) const;
  void combine(std::byte* a, const std::byte* b, std::size_t n, const Products& by);
  void halve();
  void take_half();
  void add_products();
  void give(int peer, const std::byte* values, std::size_t bytes);
  void take(int peer, std::size_t bytes);
  std::span<const std::byte> arrived(std::size_t bytes);

  // Memory that nothing has touched: its pages come as it is written, between looks.
  class Bytes {
   public:
    explicit Bytes(std::size_t n = 0)
        : memory_(std::make_unique_for_overwrite<std::byte[]>(n)), n_(n) {}
    std::byte* data() const noexcept { return memory_.get(); }
    std::size_t size() const noexcept { return n_; }

   private:
    std::unique_ptr<std::byte[]> memory_;
    std::size_t n_;
  };

  struct Share {
    std::size_t first, count;
  };

  AdasumWish wish_;
  Dtype wide_;  // that it computes in
  std::size_t size_;
  std::string words_;
  std::uint64_t said_ = 0;
  std::vector<std::uint64_t> heard_;
  Stage stage_ = Stage::agreeing;
  int place_ = -1;  // among those that take part
  int levels_ = 0, level_ = 0, turn_ = 0;
  int spare_ = 0;  // ranks beyond the power of two
  Bytes vector_;
  std::vector<Share> shares_;  // of the vector, by level
  Products products_;
  Bytes other_;  // the partner's half
  Bytes outgoing_;
  Parcel parcel_;
  int from_ = 0;
};

}  // namespace coll
