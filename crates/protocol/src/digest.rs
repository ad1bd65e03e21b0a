//! MD5 identities that every coordinator computes alike, so that a client may execute anywhere what
//! it prepared somewhere (`QueryProcessor.computeId`, `ResultSet.computeResultMetadataId`).

use md5::{Digest, Md5};

use crate::{
    class_name::{self, ClassName},
    column::Column,
};

/// An MD5 sum.
pub type Id = [u8; 16];

/// Id of a prepared statement. `keyspace` is the connection's, or the request's own; none for a
/// statement whose names are all qualified, and where there is none.
pub fn prepared_id(keyspace: Option<&str>, query: &str) -> Id {
    let mut md5 = Md5::new();
    md5.update(keyspace.unwrap_or_default());
    md5.update(query);
    md5.finalize().into()
}

/// Id of a result's metadata. Names and types count, keyspace and table do not; a clustering column
/// in descending order counts as `ReversedType(...)`.
pub fn result_metadata_id(columns: &[Column], names: ClassName) -> Id {
    let mut md5 = Md5::new();
    for column in columns {
        md5.update(&column.name);
        md5.update([0]);
        let class = names(&column.cql_type);
        if column.reversed {
            md5.update(class_name::reversed(&class));
        } else {
            md5.update(class);
        }
        md5.update([0, 0]);
    }
    md5.finalize().into()
}
