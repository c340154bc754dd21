#pragma once
// Values folded into others at given places, for tests of their template: flat sums, batches, columns, tuples, slices, integers.

namespace sylvite {

inline constexpr const char* scatter_fold_texts[] = {
    R"(graph g(%x: f32[300], %i: i64[7000], %u: f32[7000]) { %v: f32[300] = scatter_elements(%x, %i, %u) {axis=0, reduction="add"} return %v })",
    R"(graph g(%x: f32[5,40,4], %i: i64[5,900,4], %u: f32[5,900,4]) { %v: f32[5,40,4] = scatter_elements(%x, %i, %u) {axis=1, reduction="max"} return %v })",
    R"(graph g(%i: i32[3,77], %u: bf16[3,77]) { %n = constant bf16[] {-10000.0} %x: bf16[3,1000] = broadcast_to(%n) {shape=[3,1000]} %v: bf16[3,1000] = scatter_elements(%x, %i, %u) {axis=1, reduction="max"} return %v })",
    R"(graph g(%x: f16[50,33], %i: i64[500,33], %u: f16[500,33]) { %v: f16[50,33] = scatter_elements(%x, %i, %u) {axis=0, reduction="min"} return %v })",
    R"(graph g(%x: i64[60], %i: i64[4000], %u: i64[4000]) { %v: i64[60] = scatter_elements(%x, %i, %u) {axis=0, reduction="add"} return %v })",
    R"(graph g(%x: i32[9,70], %i: i64[20,70], %u: i32[20,70]) { %v: i32[9,70] = scatter_elements(%x, %i, %u) {axis=0, reduction="max"} return %v })",
    R"(graph g(%x: f32[7,9,20], %i: i64[400,2], %u: f32[400,20]) { %v: f32[7,9,20] = scatter_nd(%x, %i, %u) {reduction="add"} return %v })",
    R"(graph g(%x: f32[40,33], %i: i64[8,40,1], %u: f32[8,40,33]) { %v: f32[40,33] = scatter_nd(%x, %i, %u) {reduction="max"} return %v })",
    R"(graph g(%x: f32[30], %i: i64[45,1], %u: f32[45]) { %v: f32[30] = scatter_nd(%x, %i, %u) {reduction="mul"} return %v })",
    R"(graph g(%x: f32[70000], %i: i64[60000], %u: f32[60000]) { %v: f32[70000] = scatter_elements(%x, %i, %u) {axis=0, reduction="add"} return %v })",
    R"(graph g(%i: i64[3,700,24], %u: f32[3,700,24]) { %n = constant f32[] {0.0} %x: f32[3,4096,24] = broadcast_to(%n) {shape=[3,4096,24]} %v: f32[3,4096,24] = scatter_elements(%x, %i, %u) {axis=1, reduction="add"} return %v })",
};

}  // namespace sylvite
