//! JMX object names, as far as GRANT looks at them (`javax.management.ObjectName`).

/// Why a name cannot be granted on; `pattern` says that the plural form was used.
pub(super) fn refusal(name: &str, pattern: bool) -> Option<String> {
    if name.is_empty() {
        return Some("Empty JMX object name supplied".to_owned());
    }
    if name == "*:*" {
        return Some("Please use ALL MBEANS instead of wildcard pattern".to_owned());
    }
    match is_pattern(name) {
        None => Some(format!("{name} is not a valid JMX object name")),
        Some(false) if pattern => {
            Some(format!("Plural form used, but non-pattern JMX object name specified ({name})"))
        }
        Some(_) => None,
    }
}

/// Whether an object name has wildcards; `None` if it is none.
fn is_pattern(name: &str) -> Option<bool> {
    let (domain, properties) = name.split_once(':')?;
    if domain.contains('\n') || properties.is_empty() {
        return None;
    }
    let mut pattern = domain.contains(['*', '?']);
    let mut any = false;
    let mut keys = Vec::new();
    let mut rest = properties;
    loop {
        let (item, after) = property(rest)?;
        if item == "*" {
            if any {
                return None;
            }
            any = true;
            pattern = true;
        } else {
            let (key, value) = item.split_once('=')?;
            if key.is_empty() || key.contains([',', ':', '*', '?', '\n']) || keys.contains(&key) {
                return None;
            }
            pattern |= is_value_pattern(value)?;
            keys.push(key);
        }
        match after {
            None => return Some(pattern),
            Some(after) => rest = after,
        }
    }
}

/// The first property of a list and what follows its comma.
fn property(list: &str) -> Option<(&str, Option<&str>)> {
    let quoted_from = list.find("=\"").filter(|at| !list.get(..*at).unwrap_or("").contains(','));
    let start = match quoted_from {
        Some(at) => at + 2 + closing_quote(list.get(at + 2..)?)? + 1,
        None => 0,
    };
    let end = list.get(start..)?.find(',').map(|at| at + start);
    match end {
        Some(end) if quoted_from.is_some() && end != start => None,
        Some(end) => Some((list.get(..end)?, Some(list.get(end + 1..)?))),
        None if quoted_from.is_some() && start != list.len() => None,
        None => Some((list, None)),
    }
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            _ if escaped => {
                if !matches!(c, '\\' | '"' | '?' | '*' | 'n') {
                    return None;
                }
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some(at),
            _ => {}
        }
    }
    None
}

fn is_value_pattern(value: &str) -> Option<bool> {
    if let Some(quoted) = value.strip_prefix('"') {
        let mut escaped = false;
        let mut pattern = false;
        for c in quoted.chars() {
            pattern |= !escaped && matches!(c, '*' | '?');
            escaped = !escaped && c == '\\';
        }
        return Some(pattern);
    }
    if value.contains(['=', ':', '"', '\n']) {
        return None;
    }
    Some(value.contains(['*', '?']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        assert_eq!(is_pattern("org.apache:type=A,name=B"), Some(false));
        assert_eq!(is_pattern("org.apache:type=A,*"), Some(true));
        assert_eq!(is_pattern("org.*:type=A"), Some(true));
        assert_eq!(is_pattern("d:k=\"a,b*\",l=1"), Some(true));
        for bad in
            ["", "d", "d:", "d:k", "d:k=1,k=2", "d:=1", "d:k=\"a", "d:k=1,", "d:*,*", "d:k=a:b"]
        {
            assert_eq!(is_pattern(bad), None, "{bad}");
        }
    }
}
