/**
 * The store {@code S3}: its keys, its life, and what the doctor looks at. Tasks go in, blocks and look-ups are
 * in the rooms below.
 */
package ucm.store.s3;
