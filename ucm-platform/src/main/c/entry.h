/*
 * How the JVM finds a function of this library: by the names of the package, the class (with the last package before it) and the method. It passes its
 * own environment and the class first, which no function here needs; a long of Java may be a pointer.
 */
#define ENTRY(result, class, method, ...)                                                                              \
  result Java_ucm_platform_##class##_##method(void *jvm __attribute__((unused)),                                   \
                                                  void *type __attribute__((unused)), ##__VA_ARGS__)
