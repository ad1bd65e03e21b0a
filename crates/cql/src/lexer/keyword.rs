//! The words of the grammar, and which of them may still name something.

/// How far a keyword may serve as an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Nowhere.
    Reserved,
    /// Everywhere, types included.
    Basic,
    /// The name of a native type: a name of anything but a type.
    Native,
    /// A name of a column, table, keyspace, ..., not of a function or (`key` excepted) a type.
    Name,
}

macro_rules! keywords {
    ($($variant:ident, $class:ident, $text:literal;)*) => {
        /// A word of the grammar.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)] // each variant is the word it is named after
        pub enum Keyword {
            $($variant,)*
        }

        /// The words in alphabetical order, which is that of the variants.
        const WORDS: &[(&str, Keyword, Class)] =
            &[$(($text, Keyword::$variant, Class::$class),)*];
    };
}

keywords! {
    Access, Basic, "access";
    Add, Reserved, "add";
    Aggregate, Basic, "aggregate";
    Aggregates, Basic, "aggregates";
    All, Basic, "all";
    Allow, Reserved, "allow";
    Alter, Reserved, "alter";
    And, Reserved, "and";
    Ann, Basic, "ann";
    Apply, Reserved, "apply";
    As, Basic, "as";
    Asc, Reserved, "asc";
    Ascii, Native, "ascii";
    Authorize, Reserved, "authorize";
    Batch, Reserved, "batch";
    Begin, Reserved, "begin";
    Bigint, Native, "bigint";
    Blob, Native, "blob";
    Boolean, Native, "boolean";
    By, Reserved, "by";
    Called, Basic, "called";
    Cast, Name, "cast";
    Cidrs, Basic, "cidrs";
    Cluster, Basic, "cluster";
    Clustering, Basic, "clustering";
    Compact, Basic, "compact";
    Contains, Basic, "contains";
    Count, Name, "count";
    Counter, Native, "counter";
    Create, Reserved, "create";
    Custom, Basic, "custom";
    Datacenters, Basic, "datacenters";
    Date, Native, "date";
    Decimal, Native, "decimal";
    Default, Basic, "default";
    Delete, Reserved, "delete";
    Desc, Reserved, "desc";
    Describe, Reserved, "describe";
    Distinct, Name, "distinct";
    Double, Native, "double";
    Drop, Reserved, "drop";
    Duration, Native, "duration";
    Entries, Reserved, "entries";
    Execute, Reserved, "execute";
    Exists, Basic, "exists";
    Filtering, Basic, "filtering";
    Finalfunc, Basic, "finalfunc";
    Float, Native, "float";
    From, Reserved, "from";
    Frozen, Basic, "frozen";
    Full, Reserved, "full";
    Function, Basic, "function";
    Functions, Basic, "functions";
    Grant, Reserved, "grant";
    Group, Basic, "group";
    Hashed, Basic, "hashed";
    Identity, Basic, "identity";
    If, Reserved, "if";
    In, Reserved, "in";
    Index, Reserved, "index";
    Inet, Native, "inet";
    Infinity, Reserved, "infinity";
    Initcond, Basic, "initcond";
    Input, Basic, "input";
    Insert, Reserved, "insert";
    Int, Native, "int";
    Internals, Basic, "internals";
    Into, Reserved, "into";
    Is, Reserved, "is";
    Json, Name, "json";
    Key, Name, "key";
    Keys, Basic, "keys";
    Keyspace, Reserved, "keyspace";
    Keyspaces, Basic, "keyspaces";
    Language, Basic, "language";
    Like, Basic, "like";
    Limit, Reserved, "limit";
    List, Basic, "list";
    Login, Basic, "login";
    Map, Basic, "map";
    Masked, Basic, "masked";
    Materialized, Reserved, "materialized";
    Maxwritetime, Name, "maxwritetime";
    Mbean, Basic, "mbean";
    Mbeans, Basic, "mbeans";
    Modify, Reserved, "modify";
    Nan, Reserved, "nan";
    Nologin, Basic, "nologin";
    Norecursive, Reserved, "norecursive";
    Nosuperuser, Basic, "nosuperuser";
    Not, Reserved, "not";
    Null, Reserved, "null";
    Of, Reserved, "of";
    On, Reserved, "on";
    Only, Basic, "only";
    Options, Basic, "options";
    Or, Reserved, "or";
    Order, Reserved, "order";
    Partition, Basic, "partition";
    Password, Basic, "password";
    Per, Basic, "per";
    Permission, Basic, "permission";
    Permissions, Basic, "permissions";
    Primary, Reserved, "primary";
    Rename, Reserved, "rename";
    Replace, Basic, "replace";
    Returns, Basic, "returns";
    Revoke, Reserved, "revoke";
    Role, Basic, "role";
    Roles, Basic, "roles";
    Schema, Reserved, "schema";
    Select, Reserved, "select";
    SelectMasked, Basic, "select_masked";
    Set, Reserved, "set";
    Sfunc, Basic, "sfunc";
    Smallint, Native, "smallint";
    Static, Basic, "static";
    Storage, Basic, "storage";
    Stype, Basic, "stype";
    Superuser, Basic, "superuser";
    Table, Reserved, "table";
    Tables, Basic, "tables";
    Text, Native, "text";
    Time, Native, "time";
    Timestamp, Native, "timestamp";
    Timeuuid, Native, "timeuuid";
    Tinyint, Native, "tinyint";
    To, Reserved, "to";
    Token, Reserved, "token";
    Trigger, Basic, "trigger";
    Truncate, Reserved, "truncate";
    Ttl, Name, "ttl";
    Tuple, Basic, "tuple";
    Type, Basic, "type";
    Types, Basic, "types";
    Unlogged, Reserved, "unlogged";
    Unmask, Basic, "unmask";
    Unset, Basic, "unset";
    Update, Reserved, "update";
    Use, Reserved, "use";
    User, Basic, "user";
    Users, Basic, "users";
    Using, Reserved, "using";
    Uuid, Native, "uuid";
    Values, Basic, "values";
    Varchar, Native, "varchar";
    Varint, Native, "varint";
    Vector, Basic, "vector";
    View, Reserved, "view";
    Where, Reserved, "where";
    With, Reserved, "with";
    Writetime, Name, "writetime";
}

/// Second spellings.
const ALIASES: &[(&str, Keyword)] =
    &[("columnfamilies", Keyword::Tables), ("columnfamily", Keyword::Table)];

const COUNT: usize = WORDS.len() + ALIASES.len();

/// Every spelling packed into a number, sorted, so that a look-up is a few integer comparisons.
const PACKED: [(u128, Keyword); COUNT] = packed();

const fn pack(word: &[u8]) -> u128 {
    let mut packed = 0;
    let mut i = 0;
    while i < word.len() {
        packed = packed << 8 | word[i].to_ascii_lowercase() as u128;
        i += 1;
    }
    packed
}

const fn packed() -> [(u128, Keyword); COUNT] {
    let mut table = [(0, Keyword::Access); COUNT];
    let mut i = 0;
    while i < COUNT {
        let (text, keyword) =
            if i < WORDS.len() { (WORDS[i].0, WORDS[i].1) } else { ALIASES[i - WORDS.len()] };
        let entry = (pack(text.as_bytes()), keyword);
        let mut j = i;
        while j > 0 && table[j - 1].0 > entry.0 {
            table[j] = table[j - 1];
            j -= 1;
        }
        table[j] = entry;
        i += 1;
    }
    table
}

impl Keyword {
    /// The keyword that a word is, in any case.
    pub fn find(word: &[u8]) -> Option<Self> {
        if word.len() > size_of::<u128>() {
            return None;
        }
        let key = pack(word);
        let found = PACKED.binary_search_by_key(&key, |entry| entry.0).ok()?;
        PACKED.get(found).map(|entry| entry.1)
    }

    /// The word in lower case (of two spellings, the usual one).
    pub fn text(self) -> &'static str {
        WORDS.get(self as usize).map_or("", |word| word.0)
    }

    fn class(self) -> Class {
        WORDS.get(self as usize).map_or(Class::Reserved, |word| word.2)
    }

    /// Cannot name anything unless quoted.
    pub fn is_reserved(self) -> bool {
        self.class() == Class::Reserved
    }

    /// May name a function.
    pub(crate) fn names_function(self) -> bool {
        matches!(self.class(), Class::Basic | Class::Native)
            || matches!(self, Self::Token | Self::Count)
    }

    /// May name a user type.
    pub(crate) fn names_type(self) -> bool {
        self.class() == Class::Basic || self == Self::Key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_in_any_case() {
        for (text, keyword, _) in WORDS {
            assert_eq!(Keyword::find(text.to_uppercase().as_bytes()), Some(*keyword));
            assert_eq!(keyword.text(), *text);
        }
        assert_eq!(Keyword::find(b"ColumnFamily"), Some(Keyword::Table));
        assert_eq!(Keyword::find(b"selec"), None);
        assert_eq!(Keyword::find(b""), None);
    }

    #[test]
    fn reserved_words_are_reserved() {
        assert!(Keyword::Schema.is_reserved() && Keyword::Token.is_reserved());
        assert!(!Keyword::Ttl.is_reserved() && !Keyword::Ttl.names_function());
        assert!(Keyword::Int.names_function() && !Keyword::Int.names_type());
        assert!(Keyword::Key.names_type() && Keyword::Vector.names_type());
    }
}
