package ucm.pipeline;

/**
 * A way of naming blocks that was found.
 *
 * @param name what {@code block_hasher} calls it
 * @param location where it was found, for people
 */
record FoundHashing(String name, String location, BlockHashing hashing) {}
