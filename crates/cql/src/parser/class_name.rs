//! Cassandra's own notation of types, `'org.apache.cassandra.db.marshal.ListType(Int32Type)'`, as
//! far as the parser judges it: does the class exist and do its parameters fit. Nothing is built
//! from it here.
//!
//! The notation is that of Cassandra's `TypeParser`.

use super::MAX_DEPTH;

/// The package that a name without a dot is looked up in.
const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// The partitioner, whose order is that of keys here.
const MURMUR3: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
const MURMUR3_SHORT: &str = "Murmur3Partitioner";

/// What a class takes in its parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Nothing that matters.
    Nothing,
    /// That many types.
    Types(usize),
    /// At least that many types.
    AtLeast(usize),
    /// A type and a dimension.
    Vector,
    /// Keyspace, name and fields.
    Fields,
    /// `letter=>type`.
    Aliases,
    /// A partitioner, maybe with the type of its keys.
    Partitioner,
}

/// Why Cassandra would not take the text for a type.
pub(super) fn refusal(text: &str) -> Option<String> {
    let mut reader = Reader { text, at: 0 };
    reader.blank();
    if reader.word_ahead().is_empty() {
        return None; // no class at all is taken for bytes
    }
    let fault = reader.class(0).err()?;
    Some(format!("Error setting type {text}: {fault}"))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn blank(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\n']).len();
    }

    fn word_ahead(&self) -> &'a str {
        let rest = self.rest();
        let fits = |c: char| c.is_ascii_alphanumeric() || "-+._&".contains(c);
        rest.get(..rest.find(|c| !fits(c)).unwrap_or(rest.len())).unwrap_or("")
    }

    fn word(&mut self) -> &'a str {
        self.blank();
        let word = self.word_ahead();
        self.at += word.len();
        self.blank();
        word
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
            self.blank();
        }
        found
    }

    /// A class and its parameters.
    fn class(&mut self, depth: u32) -> Result<(), String> {
        let name = self.word();
        let full = if name.contains('.') { name.to_owned() } else { format!("{PACKAGE}{name}") };
        let Some(takes) = full.strip_prefix(PACKAGE).and_then(takes) else {
            return Err(format!("Unable to find abstract-type class '{full}'"));
        };
        let fits = depth < MAX_DEPTH && self.parameters(takes, depth).is_some();
        if fits { Ok(()) } else { Err(format!("Invalid definition for comparator {full}.")) }
    }

    fn parameters(&mut self, takes: Takes, depth: u32) -> Option<()> {
        if !self.eat("(") {
            let may_be_bare = match takes {
                Takes::Types(count) | Takes::AtLeast(count) => count == 0,
                Takes::Nothing | Takes::Aliases | Takes::Partitioner => true,
                Takes::Vector | Takes::Fields => false,
            };
            return may_be_bare.then_some(());
        }
        let mut count = 0;
        if takes == Takes::Fields {
            self.word(); // keyspace
            self.eat(",").then_some(())?;
            hex(self.word())?;
            self.eat(",");
        }
        while !self.eat(")") {
            if takes == Takes::Vector && count == 1 {
                self.word().parse::<i32>().ok().filter(|n| *n > 0)?;
            } else {
                self.parameter(takes, depth)?;
            }
            count += 1;
            if !self.eat(",") && !self.rest().starts_with(')') {
                return None;
            }
        }
        let fits = match takes {
            Takes::Types(n) => count == n,
            Takes::AtLeast(n) => count >= n,
            Takes::Vector => count == 2,
            _ => true,
        };
        fits.then_some(())
    }

    fn parameter(&mut self, takes: Takes, depth: u32) -> Option<()> {
        match takes {
            Takes::Nothing => {
                let named = !self.word().is_empty();
                if self.eat("=") {
                    self.word();
                }
                return named.then_some(());
            }
            Takes::Fields => {
                hex(self.word())?;
                self.eat(":").then_some(())?;
            }
            Takes::Partitioner => {
                let is_served = matches!(self.word(), "" | MURMUR3 | MURMUR3_SHORT);
                is_served.then_some(())?;
                if !self.eat(":") {
                    return Some(());
                }
            }
            Takes::Aliases => {
                (self.word().len() == 1).then_some(())?;
                self.eat("=>").then_some(())?;
            }
            _ => {}
        }
        self.class(depth + 1).ok()
    }
}

fn hex(word: &str) -> Option<()> {
    (word.len().is_multiple_of(2) && word.bytes().all(|b| b.is_ascii_hexdigit())).then_some(())
}

fn takes(class: &str) -> Option<Takes> {
    Some(match class {
        "AsciiType" | "BooleanType" | "ByteType" | "BytesType" | "CounterColumnType"
        | "DateType" | "DecimalType" | "DoubleType" | "DurationType" | "EmptyType"
        | "FloatType" | "InetAddressType" | "Int32Type" | "IntegerType" | "LegacyTimeUUIDType"
        | "LexicalUUIDType" | "LongType" | "ShortType" | "SimpleDateType" | "TimeType"
        | "TimeUUIDType" | "TimestampType" | "UTF8Type" | "UUIDType" => Takes::Nothing,
        "FrozenType" | "ListType" | "ReversedType" | "SetType" => Takes::Types(1),
        "MapType" => Takes::Types(2),
        "TupleType" => Takes::AtLeast(0),
        "CompositeType" => Takes::AtLeast(1),
        "PartitionerDefinedOrder" => Takes::Partitioner,
        "DynamicCompositeType" => Takes::Aliases,
        "VectorType" => Takes::Vector,
        "UserType" => Takes::Fields,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn classes() {
        for good in [
            "",
            "Int32Type",
            " org.apache.cassandra.db.marshal.MapType ( Int32Type , UTF8Type )",
            "TupleType(Int32Type,FrozenType(ListType(BytesType)))",
            "VectorType(FloatType, 3)",
            "UserType(ks,61,62:Int32Type,63:UTF8Type)",
            "DynamicCompositeType(a=>Int32Type,b=>UTF8Type)",
        ] {
            assert_eq!(refusal(good), None, "{good}");
        }
        for bad in [
            "foo",
            "ListType",
            "MapType(Int32Type)",
            "SetType(Foo)",
            "java.lang.String",
            "ListType(Int32Type",
        ] {
            assert!(refusal(bad).is_some(), "{bad}");
        }
    }
}
