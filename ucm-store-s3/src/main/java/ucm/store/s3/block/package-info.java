/**
 * Blocks as objects: how an object looks and is checked, how shards of a task become requests and back, which
 * blocks there are, and which are removed for room. It knows no store and no administration.
 */
package ucm.store.s3.block;
