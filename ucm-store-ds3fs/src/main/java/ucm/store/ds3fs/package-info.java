/**
 * The store {@code Ds3fs}: blocks on DeepSeek's 3FS through its USRBIO library. Transfers come
 * in, requests of the library's rings go out. The file tree, look-ups and space are those of
 * {@link ucm.store.file}; it knows no other store.
 */
package ucm.store.ds3fs;
