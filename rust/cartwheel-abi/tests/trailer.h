/* The name of the capsule that a Python module offers as `__cartwheel__`. */
#define CARTWHEEL_CAPSULE "cartwheel.plugin"

/* The symbol that the host looks for: a plugin defines it. */
#ifdef __cplusplus
extern "C" {
#endif
extern const struct cartwheel_plugin_table cartwheel_plugin __attribute__((visibility("default")));
#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
#include <exception>

namespace cartwheel {

/* Appends text to a sink. */
inline void append(cartwheel_sink *sink, const char *text) noexcept {
    size_t len = strlen(text);
    if (sink->capacity - sink->len < len) {
        sink->grow(sink, len);
    }
    if (len != 0) {
        memcpy(sink->bytes + sink->len, text, len);
    }
    sink->len += len;
}

/* Calls `call`, which returns a code, and turns an exception into CARTWHEEL_PANICKED with its text:
   no exception may leave a function of a table.

       extern "C" uint32_t run(void *rows, cartwheel_batch *batch) noexcept {
           return cartwheel::guarded(batch->error, [&] { return run_rows(rows, *batch); });
       } */
template <class Call>
uint32_t guarded(cartwheel_sink *error, Call &&call) noexcept {
    try {
        return call();
    } catch (const std::exception &exception) {
        append(error, exception.what());
    } catch (...) {
        append(error, "an exception that is no std::exception");
    }
    return CARTWHEEL_PANICKED;
}

/* The same for a call that returns a pointer, null for failure. */
template <class Call>
void *guarded_pointer(cartwheel_sink *error, Call &&call) noexcept {
    void *made = nullptr;
    uint32_t code = guarded(error, [&] {
        made = call();
        return CARTWHEEL_OK;
    });
    return code == CARTWHEEL_OK ? made : nullptr;
}

} // namespace cartwheel
#endif
