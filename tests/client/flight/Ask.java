import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** Asks a gateway by JDBC: its tables, then each statement that it is given; a line a row. */
public class Ask {
    public static void main(String[] given) throws SQLException {
        try (Connection connection = DriverManager.getConnection(given[0])) {
            try (ResultSet tables = connection.getMetaData().getTables(null, null, null, null)) {
                while (tables.next()) {
                    System.out.println("table " + tables.getString("TABLE_NAME"));
                }
            }
            for (int number = 1; number < given.length; number++) {
                try (Statement statement = connection.createStatement();
                        ResultSet rows = statement.executeQuery(given[number])) {
                    say(rows);
                } catch (SQLException refused) {
                    System.out.println("refused " + refused.getMessage());
                }
            }
        }
    }

    private static void say(ResultSet rows) throws SQLException {
        while (rows.next()) {
            StringBuilder line = new StringBuilder("row");
            for (int column = 1; column <= rows.getMetaData().getColumnCount(); column++) {
                line.append(' ').append(rows.getObject(column));
            }
            System.out.println(line);
        }
    }
}
