// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_regroup.h"

#include <utility>

#include "base/index.h"

namespace coll {

void WireRegroup::found() {
  const WirePlace& parent = parent_.place();
  place_ = parent.among(members(), rank(), name());
  place_->doors = open_doors(parent.data_doors[index(parent.self.rank)]);
  tell(text_of(place_->doors));
}

void WireRegroup::enter() {
  for (const int member : members()) place_->add_doors(told_by(member));
  made_ = parent_.branch(std::move(*place_));
  place_.reset();
}

}  // namespace coll
