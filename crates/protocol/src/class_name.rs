//! Cassandra's class strings of types: what clients see of types that their version has no code
//! for, and what ids of result metadata are computed over (`AbstractType.toString`).

use types::CqlType;

/// Writes the class string of a type.
pub type ClassName = fn(&CqlType) -> String;

const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// The class string of a type. Frozen collections and user types are wrapped in `FrozenType(...)`,
/// unless a frozen type around them says so already.
pub fn class_name(of: &CqlType) -> String {
    let mut out = String::new();
    write(of, false, &mut out);
    out
}

/// The class string of a clustering column in descending order.
pub fn reversed(class: &str) -> String {
    format!("{PACKAGE}ReversedType({class})")
}

fn write(of: &CqlType, ignore_freezing: bool, out: &mut String) {
    let class = match of {
        CqlType::Ascii => "AsciiType",
        CqlType::BigInt => "LongType",
        CqlType::Blob => "BytesType",
        CqlType::Boolean => "BooleanType",
        CqlType::Counter => "CounterColumnType",
        CqlType::Date => "SimpleDateType",
        CqlType::Decimal => "DecimalType",
        CqlType::Double => "DoubleType",
        CqlType::Duration => "DurationType",
        CqlType::Empty => "EmptyType",
        CqlType::Float => "FloatType",
        CqlType::Inet => "InetAddressType",
        CqlType::Int => "Int32Type",
        CqlType::SmallInt => "ShortType",
        CqlType::Text => "UTF8Type",
        CqlType::Time => "TimeType",
        CqlType::Timestamp => "TimestampType",
        CqlType::TimeUuid => "TimeUUIDType",
        CqlType::TinyInt => "ByteType",
        CqlType::Uuid => "UUIDType",
        CqlType::VarInt => "IntegerType",
        CqlType::Class(class) => return out.push_str(&class.marshal_string()),
        CqlType::Custom(class) => return out.push_str(class),
        CqlType::List { element, frozen } => {
            return collection("ListType", &[element], *frozen, ignore_freezing, out);
        }
        CqlType::Set { element, frozen } => {
            return collection("SetType", &[element], *frozen, ignore_freezing, out);
        }
        CqlType::Map { key, value, frozen } => {
            return collection("MapType", &[key, value], *frozen, ignore_freezing, out);
        }
        CqlType::Tuple(elements) => {
            out.push_str(PACKAGE);
            out.push_str("TupleType");
            let elements: Vec<_> = elements.iter().collect();
            return parameters(&elements, true, out);
        }
        CqlType::Udt { definition, frozen } => {
            return wrapped(*frozen, ignore_freezing, out, |ignore, out| {
                out.push_str(PACKAGE);
                out.push_str("UserType(");
                out.push_str(&definition.keyspace);
                out.push(',');
                hex(&definition.name, out);
                for (name, field) in &definition.fields {
                    out.push(',');
                    hex(name, out);
                    out.push(':');
                    write(field, ignore, out);
                }
                out.push(')');
            });
        }
        CqlType::Vector { element, dimension } => {
            out.push_str(PACKAGE);
            out.push_str("VectorType(");
            write(element, ignore_freezing, out);
            // drivers look for the spaces
            out.push_str(&format!(" , {dimension})"));
            return;
        }
    };
    out.push_str(PACKAGE);
    out.push_str(class);
}

fn collection(
    class: &str,
    elements: &[&CqlType],
    frozen: bool,
    ignore_freezing: bool,
    out: &mut String,
) {
    wrapped(frozen, ignore_freezing, out, |ignore, out| {
        out.push_str(PACKAGE);
        out.push_str(class);
        parameters(elements, ignore, out);
    });
}

fn wrapped(
    frozen: bool,
    ignore_freezing: bool,
    out: &mut String,
    inner: impl FnOnce(bool, &mut String),
) {
    let wrap = frozen && !ignore_freezing;
    if wrap {
        out.push_str(PACKAGE);
        out.push_str("FrozenType(");
    }
    inner(ignore_freezing || frozen, out);
    if wrap {
        out.push(')');
    }
}

fn parameters(elements: &[&CqlType], ignore_freezing: bool, out: &mut String) {
    out.push('(');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(element, ignore_freezing, out);
    }
    out.push(')');
}

fn hex(text: &str, out: &mut String) {
    text.bytes().for_each(|byte| out.push_str(&format!("{byte:02x}")));
}
