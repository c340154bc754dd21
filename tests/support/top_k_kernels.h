#pragma once
// First elements of rows, for tests of their template: long and short rows, alike elements, axes within, all of a row.

namespace sylvite {

inline constexpr const char* top_k_texts[] = {
    R"(graph g(%a: f32[3,8400]) { %v: f32[3,300], %i: i64[3,300] = top_k(%a) {axis=1, k=[300]} return %v, %i })",
    R"(graph g(%a: bf16[37,512]) { %v: bf16[37,16], %i: i64[37,16] = top_k(%a) {axis=1, k=[16]} return %v, %i })",
    R"(graph g(%a: bf16[2,70000]) { %v: bf16[2,40], %i: i64[2,40] = top_k(%a) {axis=1, k=[40], largest=0} return %v, %i })",
    R"(graph g(%a: f16[5,3000]) { %v: f16[5,9], %i: i64[5,9] = top_k(%a) {axis=1, k=[9]} return %v, %i })",
    R"(graph g(%a: f32[130,8]) { %v: f32[130,2], %i: i64[130,2] = top_k(%a) {axis=1, k=[2]} return %v, %i })",
    R"(graph g(%a: f32[4,500,3]) { %v: f32[4,37,3], %i: i64[4,37,3] = top_k(%a) {axis=1, k=[37], largest=0} return %v, %i })",
    R"(graph g(%a: f32[7,1000]) { %v: f32[7,1000], %i: i64[7,1000] = top_k(%a) {axis=1, k=[1000]} return %v, %i })",
    R"(graph g(%a: bf16[2,9000,2]) { %v: bf16[2,9000,2], %i: i64[2,9000,2] = top_k(%a) {axis=1, k=[9000]} return %v, %i })",
    R"(graph g(%a: f32[2,20000]) { %v: f32[2,6000], %i: i64[2,6000] = top_k(%a) {axis=1, k=[6000]} return %v, %i })",
    R"(graph g(%a: f32[300,257]) { %v: f32[300,1], %i: i64[300,1] = top_k(%a) {axis=1, k=[1], largest=0} return %v, %i })",
    R"(graph g(%a: bf16[40,4096]) { %v: bf16[40,8], %i: i64[40,8] = top_k(%a) {axis=1, k=[8]} return %v, %i })",
    R"(graph g(%a: f32[2,100000]) { %v: f32[2,3], %i: i64[2,3] = top_k(%a) {axis=1, k=[3]} return %v, %i })",
    R"(graph g(%a: f16[3,600,5]) { %v: f16[3,32,5], %i: i64[3,32,5] = top_k(%a) {axis=1, k=[32], largest=0} return %v, %i })",
    R"(graph g(%a: i64[3,70000]) { %v: i64[3,40], %i: i64[3,40] = top_k(%a) {axis=1, k=[40]} return %v, %i })",
    R"(graph g(%a: i64[6,40,2]) { %v: i64[6,3,2], %i: i64[6,3,2] = top_k(%a) {axis=1, k=[3], largest=0} return %v, %i })",
    R"(graph g(%a: i32[5,3000]) { %v: i32[5,700], %i: i64[5,700] = top_k(%a) {axis=1, k=[700]} return %v, %i })",
    R"(graph g(%a: u8[4,9000]) { %v: u8[4,5000], %i: i64[4,5000] = top_k(%a) {axis=1, k=[5000], largest=0} return %v, %i })",
};

}  // namespace sylvite
