# Script: writes OUTPUT, a C++ source that defines std::string_view sylvite::embedded::NAME with the bytes of INPUT.
# HEADER declares it.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(................................................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"${HEADER}\"

namespace {
constexpr unsigned char bytes[] = {
${bytes}};
}  // namespace

namespace sylvite::embedded {
const std::string_view ${NAME}(reinterpret_cast<const char*>(bytes), sizeof(bytes));
}  // namespace sylvite::embedded
")
