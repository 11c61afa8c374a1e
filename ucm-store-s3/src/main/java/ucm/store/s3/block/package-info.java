/**
 * Blocks as objects: how an object looks and is checked, and how shards of a task become requests and back. It
 * knows no look-up.
 */
package ucm.store.s3.block;
