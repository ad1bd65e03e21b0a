//! What an entry is about (`AuditLogEntryType`, `AuditLogEntryCategory`).

/// A group of kinds, by which entries are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Cassandra's names")]
pub enum Category {
    Query,
    Dml,
    Ddl,
    Dcl,
    Other,
    Auth,
    Error,
    Prepare,
}

impl Category {
    const ALL: [Self; 8] = [
        Self::Query,
        Self::Dml,
        Self::Ddl,
        Self::Dcl,
        Self::Other,
        Self::Auth,
        Self::Error,
        Self::Prepare,
    ];

    /// Cassandra's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "QUERY",
            Self::Dml => "DML",
            Self::Ddl => "DDL",
            Self::Dcl => "DCL",
            Self::Other => "OTHER",
            Self::Auth => "AUTH",
            Self::Error => "ERROR",
            Self::Prepare => "PREPARE",
        }
    }

    /// The one of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }
}

macro_rules! kinds {
    ($($kind:ident $name:literal $category:ident;)*) => {
        /// What an entry is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "Cassandra's names")]
        pub enum Kind {
            $($kind,)*
        }

        impl Kind {
            /// Cassandra's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The group that it is of.
            pub fn category(self) -> Category {
                match self {
                    $(Self::$kind => Category::$category,)*
                }
            }
        }
    };
}

kinds! {
    Select "SELECT" Query;
    Update "UPDATE" Dml;
    Delete "DELETE" Dml;
    Truncate "TRUNCATE" Ddl;
    CreateKeyspace "CREATE_KEYSPACE" Ddl;
    AlterKeyspace "ALTER_KEYSPACE" Ddl;
    DropKeyspace "DROP_KEYSPACE" Ddl;
    CreateTable "CREATE_TABLE" Ddl;
    AlterTable "ALTER_TABLE" Ddl;
    DropTable "DROP_TABLE" Ddl;
    PrepareStatement "PREPARE_STATEMENT" Prepare;
    CreateTrigger "CREATE_TRIGGER" Ddl;
    DropTrigger "DROP_TRIGGER" Ddl;
    CreateIndex "CREATE_INDEX" Ddl;
    DropIndex "DROP_INDEX" Ddl;
    Grant "GRANT" Dcl;
    Revoke "REVOKE" Dcl;
    CreateType "CREATE_TYPE" Ddl;
    AlterType "ALTER_TYPE" Ddl;
    DropType "DROP_TYPE" Ddl;
    CreateFunction "CREATE_FUNCTION" Ddl;
    DropFunction "DROP_FUNCTION" Ddl;
    CreateAggregate "CREATE_AGGREGATE" Ddl;
    DropAggregate "DROP_AGGREGATE" Ddl;
    CreateView "CREATE_VIEW" Ddl;
    AlterView "ALTER_VIEW" Ddl;
    DropView "DROP_VIEW" Ddl;
    CreateRole "CREATE_ROLE" Dcl;
    AlterRole "ALTER_ROLE" Dcl;
    DropRole "DROP_ROLE" Dcl;
    ListRoles "LIST_ROLES" Dcl;
    ListPermissions "LIST_PERMISSIONS" Dcl;
    CreateIdentity "CREATE_IDENTITY" Dcl;
    DropIdentity "DROP_IDENTITY" Dcl;
    Batch "BATCH" Dml;
    UseKeyspace "USE_KEYSPACE" Other;
    Describe "DESCRIBE" Other;
    RequestFailure "REQUEST_FAILURE" Error;
    LoginError "LOGIN_ERROR" Auth;
    UnauthorizedAttempt "UNAUTHORIZED_ATTEMPT" Auth;
    LoginSuccess "LOGIN_SUCCESS" Auth;
}
