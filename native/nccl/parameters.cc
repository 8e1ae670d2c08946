// SPDX-License-Identifier: Apache-2.0
// NCCL's parameters by name: there are none here but environment variables.
#include "nccl/refused.h"

namespace coll::nccl {
namespace {

constexpr char kParameters[] = "there are no parameters but environment variables";

}  // namespace
}  // namespace coll::nccl

using coll::nccl::kParameters;
using coll::nccl::refused;

extern "C" {

ncclResult_t ncclParamBind(ncclParamHandle_t*, const char*) {
  return refused("ncclParamBind", kParameters);
}
ncclResult_t ncclParamGetI8(ncclParamHandle_t, int8_t*) {
  return refused("ncclParamGetI8", kParameters);
}
ncclResult_t ncclParamGetI16(ncclParamHandle_t, int16_t*) {
  return refused("ncclParamGetI16", kParameters);
}
ncclResult_t ncclParamGetI32(ncclParamHandle_t, int32_t*) {
  return refused("ncclParamGetI32", kParameters);
}
ncclResult_t ncclParamGetI64(ncclParamHandle_t, int64_t*) {
  return refused("ncclParamGetI64", kParameters);
}
ncclResult_t ncclParamGetU8(ncclParamHandle_t, uint8_t*) {
  return refused("ncclParamGetU8", kParameters);
}
ncclResult_t ncclParamGetU16(ncclParamHandle_t, uint16_t*) {
  return refused("ncclParamGetU16", kParameters);
}
ncclResult_t ncclParamGetU32(ncclParamHandle_t, uint32_t*) {
  return refused("ncclParamGetU32", kParameters);
}
ncclResult_t ncclParamGetU64(ncclParamHandle_t, uint64_t*) {
  return refused("ncclParamGetU64", kParameters);
}
ncclResult_t ncclParamGetStr(ncclParamHandle_t, const char**) {
  return refused("ncclParamGetStr", kParameters);
}
ncclResult_t ncclParamGet(ncclParamHandle_t, void*, int, int*) {
  return refused("ncclParamGet", kParameters);
}
ncclResult_t ncclParamGetParameter(const char*, const char**, int*) {
  return refused("ncclParamGetParameter", kParameters);
}
ncclResult_t ncclParamGetAllParameterKeys(const char***, int*) {
  return refused("ncclParamGetAllParameterKeys", kParameters);
}

// Nothing to be printed.
void ncclParamDumpAll() {}

}  // extern "C"
