/**
 * The administration of a bucket: what lies below a prefix, whether it is whole, and room. An address and
 * settings go in, records come out, without an open store.
 */
package ucm.store.s3.admin;
