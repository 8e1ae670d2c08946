// SPDX-License-Identifier: Apache-2.0
// Adasum, behind the C interface.
#include <memory>

#include "abi/handle.h"
#include "collectives_adasum.h"
#include "communicator/adasum_call.h"

extern "C" {

coll_status coll_adasum(coll_comm* comm, const void* input, void* output, size_t count,
                        int32_t dtype, double timeout) {
  return coll::guarded([&] {
    if (!(timeout >= 0)) {
      throw coll::Error(coll::Status::invalid_argument,
                        "adasum: the time-out must be 0 seconds or more");
    }
    const coll::AdasumWish wish{.input = input,
                                .output = output,
                                .count = count,
                                .dtype = static_cast<coll::Dtype>(dtype),
                                .timeout = timeout};
    return coll::on_either(comm, [&]<class C>(C& communicator) {
      auto steps = std::make_unique<coll::StepsOn<coll::AdasumCall, C>>(communicator, wish);
      return coll::take_steps(*comm, std::move(steps), [] {});
    });
  });
}

}  // extern "C"
