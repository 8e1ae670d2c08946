// SPDX-License-Identifier: Apache-2.0
// Values go from and to the places of a list, whatever its form, and nothing else is touched.
#include "sparse/place_list.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "check.h"
#include "pairs_of_test.h"

using namespace coll;

namespace {

using List = std::vector<std::uint32_t>;

// n places below `room`: side by side, or ascending, or in any order and several times.
enum class Form { run, ascending, any };

List list_of(Form form, std::size_t n, std::size_t room) {
  List list;
  if (form == Form::run) {
    const auto first = static_cast<std::uint32_t>(check::random_below(room - n + 1));
    for (std::uint32_t i = 0; i < n; ++i) list.push_back(first + i);
  } else if (form == Form::any) {
    for (std::size_t i = 0; i < n; ++i) {
      list.push_back(static_cast<std::uint32_t>(check::random_below(room)));
    }
  } else {
    for (const std::uint64_t place : check::random_run(Dtype::uint8, n, 0, room).indices) {
      list.push_back(static_cast<std::uint32_t>(place));
    }
  }
  return list;
}

// As one value after the other is added, by the kernel of pairs of the least set.
check::Bytes added(Dtype dtype, check::Bytes sums, const List& list, const check::Bytes& values) {
  const std::size_t size = size_of(dtype);
  const PairKernels plain = pair_kernels_for(InstructionSet::baseline, dtype, 4);
  CHECK(
      plain.add_to(sums.data(), 0, sums.size() / size, {list.data(), values.data(), list.size()}));
  return sums;
}

void check_list(const PlaceSums& with, Dtype dtype, const List& list, std::size_t room) {
  const std::size_t size = size_of(dtype);
  const check::Bytes values = check::random_values(dtype, list.size()),
                     before = check::random_values(dtype, room);
  const PlaceList places(list);
  check::Placed<unsigned char> sums(room * size, 3), from(values.size(), 5);
  sums.set(before);
  from.set(values);
  places.add(with, reinterpret_cast<std::byte*>(sums.data()), room,
             reinterpret_cast<const std::byte*>(from.data()));
  const check::Bytes wanted = added(dtype, before, list, values);
  CHECK(std::memcmp(sums.data(), wanted.data(), wanted.size()) == 0);
  CHECK(sums.margins_intact());

  check::Placed<unsigned char> picked(list.size() * size, 1);
  places.pick(with, reinterpret_cast<std::byte*>(picked.data()),
              reinterpret_cast<const std::byte*>(before.data()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    CHECK(std::memcmp(picked.data() + i * size, before.data() + list[i] * size, size) == 0);
  }
  CHECK(picked.margins_intact());
}

TEST(values_go_from_and_to_places) {
  for (const Dtype dtype : check::kSummed) {
    PlaceSums with(dtype);
    for (const InstructionSet set : kInstructionSets) {
      if (!supported(set)) continue;
      with.at = pair_kernels_for(set, dtype, 4);
      for (const Form form : {Form::run, Form::ascending, Form::any}) {
        for (const std::size_t n : {0UL, 1UL, 2UL, 15UL, 16UL, 17UL, 100UL, 1000UL}) {
          for (const std::size_t spread : {1UL, 2UL, 9UL, 40UL}) {
            const std::size_t room = n * spread + check::random_below(40) + 1;
            check_list(with, dtype, list_of(form, n, room), room);
          }
        }
      }
    }
  }
}

TEST(masks_serve_where_there_are_registers) {
  const PairKernels wide = pair_kernels_for(InstructionSet::baseline, Dtype::float32, 4);
  CHECK(wide.add_expanded == nullptr);
  if (!supported(InstructionSet::avx512)) return;
  for (const Dtype dtype : {Dtype::float32, Dtype::int32, Dtype::float64, Dtype::complex64}) {
    CHECK(pair_kernels_for(InstructionSet::avx512, dtype, 4).add_expanded != nullptr);
  }
  for (const Dtype dtype : {Dtype::float16, Dtype::boolean, Dtype::complex128}) {
    CHECK(pair_kernels_for(InstructionSet::avx512, dtype, 4).add_expanded == nullptr);
  }
}

TEST(absent_places_are_zero) {
  const PlaceSums with(Dtype::int32);
  const std::vector<std::int32_t> from = {7, 8, 9};
  for (const List& list :
       {List{PlaceList::kAbsent}, List{1, PlaceList::kAbsent}, List{0, PlaceList::kAbsent, 2},
        List{PlaceList::kAbsent, 0}, List{PlaceList::kAbsent, 0, 1},
        List{PlaceList::kAbsent - 1, PlaceList::kAbsent, 0}}) {
    if (list.front() == PlaceList::kAbsent - 1) {  // far, but there
      CHECK(PlaceList(list).side_by_side(with, nullptr) == nullptr);
      continue;
    }
    std::vector<std::int32_t> to(list.size(), -1);
    PlaceList(list).pick(with, reinterpret_cast<std::byte*>(to.data()),
                         reinterpret_cast<const std::byte*>(from.data()));
    for (std::size_t i = 0; i < list.size(); ++i) {
      CHECK(to[i] == (list[i] == PlaceList::kAbsent ? 0 : from[list[i]]));
    }
  }
}

TEST(a_run_is_known) {
  const PlaceSums with(Dtype::float32);
  std::byte memory[64];
  CHECK(PlaceList(List{2, 3, 4}).side_by_side(with, memory) == memory + 8);
  CHECK(PlaceList(List{2, 4}).side_by_side(with, memory) == nullptr);
  CHECK(PlaceList(List{}).side_by_side(with, memory) == nullptr);
  CHECK(PlaceList(List{PlaceList::kAbsent}).side_by_side(with, memory) == nullptr);
  CHECK(PlaceList(List{0, 1, 2}).are_all_of(3) && PlaceList(List{}).are_all_of(0));
  CHECK(!PlaceList(List{0, 1, 2}).are_all_of(4) && !PlaceList(List{1, 2, 3}).are_all_of(3));
  CHECK(!PlaceList(List{0, 2, 1}).are_all_of(3));
}

}  // namespace
