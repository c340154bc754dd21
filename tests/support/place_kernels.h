#pragma once
// Values written at given places, for tests of their template: flat maxima, batches, other axes, fewer indices, tuples, slices.

namespace sylvite {

inline constexpr const char* place_texts[] = {
    R"(graph g(%x: f32[3000], %i: i64[700], %u: f32[700]) { %v: f32[3000] = scatter_elements(%x, %i, %u) {axis=0, reduction="none"} return %v })",
    R"(graph g(%i: i64[900], %u: bf16[900]) { %z = constant bf16[] {0.0} %x: bf16[5000] = broadcast_to(%z) {shape=[5000]} %v: bf16[5000] = scatter_elements(%x, %i, %u) {axis=0, reduction="none"} return %v })",
    R"(graph g(%x: f32[5,100], %i: i64[5,7], %u: f32[5,7]) { %v: f32[5,100] = scatter_elements(%x, %i, %u) {axis=1, reduction="none"} return %v })",
    R"(graph g(%x: f16[4,30,9], %i: i32[4,11,9], %u: f16[4,11,9]) { %v: f16[4,30,9] = scatter_elements(%x, %i, %u) {axis=1, reduction="none"} return %v })",
    R"(graph g(%x: i64[4,30,9], %i: i64[3,11,8], %u: i64[3,11,8]) { %v: i64[4,30,9] = scatter_elements(%x, %i, %u) {axis=0, reduction="none"} return %v })",
    R"(graph g(%x: u8[6,5], %i: i64[2,4], %u: u8[2,4]) { %v: u8[6,5] = scatter_elements(%x, %i, %u) {axis=1, reduction="none"} return %v })",
    R"(graph g(%x: f32[50,33], %i: i64[8,4,1], %u: f32[8,4,33]) { %v: f32[50,33] = scatter_nd(%x, %i, %u) {reduction="none"} return %v })",
    R"(graph g(%x: bf16[7,9,20], %i: i64[40,2], %u: bf16[40,20]) { %v: bf16[7,9,20] = scatter_nd(%x, %i, %u) {reduction="none"} return %v })",
    R"(graph g(%x: f32[70000], %i: i64[60000,1], %u: f32[60000]) { %v: f32[70000] = scatter_nd(%x, %i, %u) {reduction="none"} return %v })",
    R"(graph g(%x: f32[70000], %i: i32[60000,1], %u: f32[60000], %a: i32[240], %b: i32[240]) { %v: f32[70000] = scatter_nd(%x, %i, %u, %a, %b) {reduction="none"} return %v })",
    R"(graph g(%i: i32[8192,1], %u: bf16[8192,4], %a: i32[64], %b: i32[64]) { %z = constant bf16[] {0.0} %x: bf16[9000,4] = broadcast_to(%z) {shape=[9000,4]} %v: bf16[9000,4] = scatter_nd(%x, %i, %u, %a, %b) {reduction="none"} return %v })",
};

}  // namespace sylvite
